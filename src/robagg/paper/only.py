"""A part of an experiment: `rule=TQ,attack=IPM`; one name given twice means either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robagg._core.registry import fold, unknown
from robagg.lab.run import Run

NAMES = ("panel", "rule", "mixer", "attack", "task", "f", "rho", "seed")


@dataclass(frozen=True)
class Only:
    """What to keep, as (name, value) pairs; nothing given keeps all.

    Example:
        >>> only = Only.parse("rule=TQ,attack=IPM,attack=LF")
        >>> only.keeps("f=6", "TQ", Run(rule="tq", attack="lf", f=6))
        True
        >>> only.keeps("f=6", "CM", Run(rule="cm", attack="lf", f=6))
        False
    """

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> Only:
        pairs = []
        for part in filter(None, (text or "").split(",")):
            name, sign, value = (piece.strip() for piece in part.partition("="))
            if not sign or not value:
                raise ValueError(f"--only wants name=value pairs such as rule=TQ,attack=IPM; got {part!r}")
            if name not in NAMES:
                raise ValueError(unknown("name for --only", name, NAMES, NAMES))
            pairs.append((name, value))
        return cls(tuple(pairs))

    def keeps(self, panel: str, row: str, run: Run) -> bool:
        """Whether a run in this panel and row is wanted."""
        for name in {name for name, _ in self.pairs}:
            known = _tell(name, panel, row, run)
            if not any(_match(value, known) for key, value in self.pairs if key == name):
                return False
        return True


def _tell(name: str, panel: str, row: str, run: Run) -> Sequence[str | float]:
    """All that this run may be called by."""
    task, rule, attack, split = run.parts
    if name in ("f", "seed"):
        return [getattr(run, name)]
    if name == "rho":
        return [value] if (value := getattr(split, "rho", None)) is not None else []
    return {
        "panel": [panel],
        "rule": [row, rule.core.name()],
        "mixer": [mixer.name() for mixer in rule.mixers] or ["none"],
        "attack": [type(attack).__name__, *attack.names()],
        "task": [task.name(), run.task],
    }[name]


def _match(value: str, known: Sequence[str | float]) -> bool:
    for one in known:
        if isinstance(one, str):
            if fold(one) == fold(value):
                return True
        else:
            try:
                if float(value) == one:
                    return True
            except ValueError:
                raise ValueError(f"--only wants a number for f, rho and seed; got {value!r}") from None
    return False
