"""Does the runs of an experiment that its store has no result of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from robagg.lab.estimation import Estimate, estimate
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.store import Store, find_settled
from robagg.lab.sweeps import Summary, sweep
from robagg.lab.watcher import Watcher
from robagg.paper.experiment import Experiment, Plan

Say = Callable[[str], object]


def perform(
    experiment: Experiment,
    plan: Plan,
    store: Path,
    options: Options,
    *,
    watcher: Watcher | None = None,
    say: Say = print,
) -> Summary:
    """Do what is missing; data are looked for first, so that what is not there is said once and not for every run."""
    runs = choose(experiment, plan, options, say)
    for name, count in adopt(runs, store).items():
        say(f"taken over from {name}: {count} run{'s' * (count > 1)}")
    settled = find_settled(Store(store).read().records)
    missing = _find_missing([run for run in runs if run.key not in settled], options)
    for task, error in missing.items():
        say(f"left out: {task}: {error}")
    kept = [run for run in runs if run.task not in missing or run.key in settled]
    if not kept:
        raise next(iter(missing.values()))
    return sweep(kept, store, options=_with_plugins(options, experiment), watcher=watcher)


def foresee(experiment: Experiment, plan: Plan, store: Path, options: Options, *, say: Say = print) -> Estimate:
    """How many runs there are to do, and how long they would take here."""
    return estimate(choose(experiment, plan, options, say), store, _with_plugins(options, experiment))


def choose(experiment: Experiment, plan: Plan, options: Options, say: Say) -> list[Run]:
    """The runs for which there are data; panels without are named. None at all is an error."""
    places = experiment.lay(plan)
    refused = experiment.refuse(places, options.data)
    for label, reason in refused.items():
        say(f"left out: {label}: {reason}")
    kept = [place.run for place in places if place.panel not in refused]
    if not kept:
        raise FileNotFoundError(
            f"nothing of {experiment.name} can be run: {'; '.join(dict.fromkeys(refused.values()))}"
        )
    return kept


def adopt(runs: Sequence[Run], store: Path) -> dict[str, int]:
    """Copy results of the runs that stores beside this one have: experiments share cells, and none is run twice."""
    counts: dict[str, int] = {}
    with Store(store) as own:
        wanted = {run.key for run in runs if own.records.get(run.key, {}).get("status") != "ok"}
        for path in sorted(set(store.parent.glob("*.jsonl")) - {store}) if wanted else []:
            for key, record in Store(path).read().records.items():
                if key in wanted and record["status"] == "ok":
                    wanted.remove(key)
                    own.append(record)
                    counts[path.name] = counts.get(path.name, 0) + 1
    return counts


def _find_missing(runs: list[Run], options: Options) -> dict[str, ImportError]:
    """Tasks whose data need a package that is not there; what is computed once, like embeddings, is computed here."""
    missing = {}
    for text, run in {run.task: run for run in runs}.items():
        try:
            run.parts.task.load(options.data)
        except ImportError as error:
            missing[text] = error
    return missing


def _with_plugins(options: Options, experiment: Experiment) -> Options:
    return replace(options, plugins=(*options.plugins, *experiment.plugins))
