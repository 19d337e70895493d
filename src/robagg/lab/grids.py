"""Many runs at once: every combination of what is given as a list."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from robagg._core.registry import fold, split_call
from robagg.attacks import attacks as attack_registry
from robagg.lab.run import Run


def grid(
    *,
    rules: Any,
    attacks: Any = "none",
    tasks: Any = "digits",
    splits: Any = None,
    rho: Any = None,
    n: Any = 0,
    f: Any = 0,
    seeds: Any = 0,
    mixers: Any = "",
    strengths: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Every combination of the lists given; a single value is a list of one.

    The seed turns slowest, so that a sweep that is stopped early has whole tables of its first seeds. Nothing is left
    out: a combination that cannot be run, or one that comes twice, is an error.

    Args:
        rules: rules or chains; those that name no f get each run's.
        attacks: what the Byzantine clients do.
        tasks: data and model.
        splits: who holds what; not together with `rho`.
        rho: the heterogeneity of the paper's split.
        n: clients; 0: each task's own number.
        f: Byzantine clients.
        seeds: one run per seed.
        mixers: pre-aggregators or chains of them before every rule; "": none.
        strengths: for attacks named here, parameters and their values: `{"alie": {"z": [0.5, 1.0]}}`.
        settings: settings of training and their values; lists are axes here too.

    Example:
        >>> runs = grid(rules=["tq", "cm"], mixers=["", "nnm"], attacks=["alie", "ipm"], f=[2, 3], seeds=[0, 1, 2],
        ...             strengths={"alie": {"z": [0.5, 1.0]}}, settings={"rounds": 50})
        >>> len(runs) == 2 * 2 * 3 * 2 * 3
        True
        >>> print(runs[0])
        digits, tq, alie(z=0.5), rho(rho=0.5), n=20, f=2, seed=0, rounds=50
    """
    if splits is not None and rho is not None:
        raise ValueError(
            f"splits and rho, which is short for rho's split, must not be given both, got {splits!r}, {rho!r}"
        )
    names = [f"rho(rho={value!r})" for value in _list("rho", rho)] if rho is not None else _list("split", splits)
    chains = [
        f"{mixer} >> {rule}" if mixer else rule for mixer in _list("mixer", mixers) for rule in _list("rule", rules)
    ]
    runs: dict[str, Run] = {}
    for seed, task, split, clients, byzantine, changed, rule, attack in itertools.product(
        _list("seed", seeds),
        _list("task", tasks),
        ["rho"] if splits is None and rho is None else names,
        _list("n", n),
        _list("f", f),
        _combine(settings or {}),
        chains,
        _strengthen([str(attack) for attack in _list("attack", attacks)], strengths or {}),
    ):
        place = f"rule={rule!r}, attack={attack!r}, task={task!r}, split={split!r}, n={clients!r}, f={byzantine!r}"
        try:
            run = Run(
                rule=rule, attack=attack, task=task, split=split, n=clients, f=byzantine, seed=seed, settings=changed
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"the grid has a cell that cannot be run ({place}): {error}") from error
        if run.key in runs:
            raise ValueError(f"the grid has one run twice ({place}, seed={seed}): {run}")
        runs[run.key] = run
    return list(runs.values())


def _list(name: str, given: Any) -> list[Any]:
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]
    if not values:
        raise ValueError(f"{name} must have at least one value, got none")
    return values


def _combine(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of settings; a schedule is a list of pairs by itself, so an axis of schedules nests deeper."""
    if not isinstance(settings, Mapping):
        raise ValueError(f"settings must be given by name, such as {{rounds = 50}}, got {settings!r}")
    axes = []
    for name, given in settings.items():
        single = name == "schedule" and _depth(given) < 3 and not _has_text(given)
        axes.append([(name, value) for value in ([given] if single else _list(name, given))])
    return [dict(chosen) for chosen in itertools.product(*axes)]


def _has_text(value: Any) -> bool:
    """Whether it is a list of schedules of which one is named."""
    return isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(item, str) for item in value)


def _depth(value: Any) -> int:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return 1 + max((_depth(item) for item in value), default=1)
    return 0


def _strengthen(given: list[str], strengths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The attacks, those with strengths once for each combination of them."""
    if not isinstance(strengths, Mapping):
        raise ValueError(f"strengths must be given by attack, such as {{alie = {{z = [0.5, 1.0]}}}}, got {strengths!r}")
    by_name = {attack_registry.find(name).name(): axes for name, axes in strengths.items()}
    names = [attack_registry.find(split_call(text, "attack")[0]).name() for text in given]
    for name, axes in by_name.items():
        if name not in names:
            raise ValueError(f"strengths are given for {name!r}, which is not among the attacks: {', '.join(given)}")
        if not isinstance(axes, Mapping):
            raise ValueError(f"strengths of {name!r} must be given as parameter = values, got {axes!r}")
    result = []
    for text, name in zip(given, names, strict=True):
        own = split_call(text, "attack")[1]
        free = {key: value for key, value in by_name.get(name, {}).items() if fold(key) not in map(fold, own)}
        for chosen in itertools.product(*([(key, value) for value in _list(key, v)] for key, v in free.items())):
            fields = [f"{key}={value!r}" for key, value in (*own.items(), *chosen)]
            result.append(f"{name}({', '.join(fields)})" if fields else text)
    return result
