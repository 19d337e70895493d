"""A part of an experiment: `rule=TQ,attack=IPM`; one name given twice means either."""

from __future__ import annotations

from dataclasses import dataclass

from robagg._core.registry import fold, unknown
from robagg.lab.run import Run

NUMBERS = ("f", "rho", "seed")
NAMES = ("panel", "rule", "mixer", "attack", "task", *NUMBERS)


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
                raise ValueError(f"--only must be name=value pairs such as rule=TQ,attack=IPM, got {part!r}")
            if name not in NAMES:
                raise ValueError(unknown("name for --only", name, NAMES, NAMES))
            _read(name, value)
            pairs.append((name, value))
        return cls(tuple(pairs))

    def keeps(self, panel: str, row: str, run: Run) -> bool:
        """Whether a run in this panel and row is wanted."""
        task, rule, attack, split = run.parts
        known = {
            "panel": [panel],
            "rule": [row, rule.core.name()],
            "mixer": [mixer.name() for mixer in rule.mixers] or ["none"],
            "attack": [type(attack).__name__, *attack.names()],
            "task": [task.name(), run.task],
            "f": [str(run.f)],
            "rho": [str(getattr(split, "rho", "nan"))],
            "seed": [str(run.seed)],
        }
        wanted: dict[str, set[str | float]] = {}
        for name, value in self.pairs:
            wanted.setdefault(name, set()).add(_read(name, value))
        return all(values & {_read(name, text) for text in known[name]} for name, values in wanted.items())


def _read(name: str, text: str) -> str | float:
    """A value as it is compared: numbers as such, names without their spelling."""
    if name not in NUMBERS:
        return fold(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--only must give a number for {name}, got {text!r}") from None
