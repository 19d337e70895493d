"""An experiment of the paper: panels, each a grid of rows and columns, and the runs that fill them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robagg.lab.plugins import load_plugin
from robagg.lab.run import Run
from robagg.paper.axes import FIXED, Axis, Change
from robagg.paper.claim import Claim
from robagg.paper.only import Only
from robagg.tasks.base import tasks

QUICK_TASK = "digits"
QUICK_SETTINGS: Mapping[str, Any] = {"rounds": 200, "momentum": 0.97, "rate": 2.0}
"""With these digits are learnt in a second a run; less momentum would let LF and BF hide among the honest."""


def refuse_nothing(root: str | None) -> str:
    return ""


@dataclass(frozen=True)
class Panel:
    """One grid: every row under every column, with some fields the same for all."""

    label: str
    rows: Axis
    columns: Axis
    fixed: Change = field(default_factory=dict)
    refuse: Callable[[str | None], str] = refuse_nothing
    """Why the panel cannot be run with the data in a folder; empty: it can."""


@dataclass(frozen=True)
class Place:
    """A run and the cell it belongs to; cells have a run a seed."""

    panel: str
    row: str
    column: str
    run: Run


@dataclass(frozen=True)
class Plan:
    """How an experiment is to be done, where that is not as in the paper."""

    seeds: int | None = None
    rounds: int | None = None
    only: Only = field(default_factory=Only)
    quick: bool = False
    """A look at it on digits that ends in two minutes; whatever comes of it is marked."""

    def __post_init__(self) -> None:
        for name in ("seeds", "rounds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class Experiment:
    """What is varied, and how it is shown.

    Args:
        name: as the commands call it.
        title: a line about it, for people.
        kind: table, lines, bars or curves.
        task: data and model, where panels do not say otherwise.
        panels: the grids.
        columns: what the columns are: attack (which has a worst case), f, rho; empty: what their names say.
        seeds: how many; 3 in the paper's tables.
        settings: fields of `Settings` that differ from the task's.
        numbers: the table of the paper's numbers that it is compared with.
        candidates: whether its rows are one row of the paper's done in several ways, of which the nearest is wanted.
        claims: orderings that the paper claims.
        plugins: files with what only this experiment needs.
        notes: what a reader must know.
    """

    name: str
    title: str
    kind: str
    task: str
    panels: tuple[Panel, ...]
    columns: str = "attack"
    seeds: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    numbers: str | None = None
    candidates: bool = False
    claims: tuple[Claim, ...] = ()
    plugins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def own_rounds(self) -> int:
        """How many rounds its runs have if nothing else is planned."""
        rounds: int = self.settings.get("rounds", tasks.parse(self.task).settings.rounds)
        return rounds

    def lay(self, plan: Plan | None = None) -> list[Place]:
        """All runs with their cells. The seed turns slowest, so that whole tables of the first seeds come first."""
        plan = plan or Plan()
        for plugin in self.plugins:
            load_plugin(plugin)
        places = []
        for seed in range(plan.seeds or (1 if plan.quick else self.seeds)):
            for panel in self.shrink(plan).panels:
                for row, of_row in panel.rows.items():
                    for column, of_column in panel.columns.items():
                        run = self._make(_join(panel.fixed, of_row, of_column), plan, seed)
                        if plan.only.keeps(panel.label, row, run):
                            places.append(Place(panel.label, row, column, run))
        if not places:
            raise ValueError(f"nothing of {self.name} is left by --only {dict(plan.only.pairs)}")
        return places

    def shrink(self, plan: Plan) -> Experiment:
        """The experiment as planned: a quick one has every second point of a line, and one panel for all its tasks.

        MCA's fixed width is left out of a quick one: it was found on another model. So are panels with settings of
        their own; rows with such are left out also where the plan has its own rounds.
        """
        if not plan.quick and plan.rounds is None:
            return self
        step = 2 if plan.quick and self.kind == "lines" else 1
        panels: dict[str, Panel] = {}
        for panel in (panel for panel in self.panels if not (plan.quick and "settings" in panel.fixed)):
            label = QUICK_TASK if plan.quick and "task" in panel.fixed else panel.label
            rows = {
                name: row
                for name, row in panel.rows.items()
                if "settings" not in row and not (plan.quick and name == FIXED)
            }
            columns = dict([*panel.columns.items()][::step])
            panels.setdefault(label, replace(panel, label=label, rows=rows, columns=columns))
        return replace(self, panels=tuple(panels.values()))

    def refuse(self, places: list[Place], root: str | None) -> dict[str, str]:
        """Panels among the places that cannot be run with the data in a folder, with the reason."""
        wanted = dict.fromkeys(place.panel for place in places if place.run.task != QUICK_TASK)
        told = {panel.label: panel.refuse(root) for panel in self.panels if panel.label in wanted}
        return {label: reason for label, reason in told.items() if reason}

    def _make(self, fields: dict[str, Any], plan: Plan, seed: int) -> Run:
        task = fields.pop("task", self.task)
        mixer, rule, rho = fields.pop("mixer", ""), fields.pop("rule"), fields.pop("rho")
        settings = {**self.settings, **fields.pop("settings", {})}
        if plan.quick:
            settings = dict(QUICK_SETTINGS)
        if plan.rounds is not None:
            settings["rounds"] = plan.rounds
        return Run(
            rule=f"{mixer} >> {rule}" if mixer else rule,
            split=f"rho(rho={rho!r})",
            task=QUICK_TASK if plan.quick else task,
            n=fields.pop("n", tasks.parse(task).n),
            seed=seed,
            settings=settings,
            **fields,
        )


def _join(*changes: Change) -> dict[str, Any]:
    """All fields; settings are joined too, and of two values for one the later counts."""
    joined = {name: value for change in changes for name, value in change.items()}
    settings = {name: value for change in changes for name, value in change.get("settings", {}).items()}
    return joined | ({"settings": settings} if settings else {})


def place_store(name: str, *, quick: bool = False, given: str | Path | None = None) -> Path:
    """Where an experiment's records go: what was given, else results/paper where there is a results folder, else runs.

    >>> place_store("table3", quick=True).as_posix()
    'runs/paper/table3.quick.jsonl'
    """
    if given is not None:
        return Path(given)
    folder = Path("results/paper") if Path("results").is_dir() and not quick else Path("runs/paper")
    return folder / f"{name}{'.quick' if quick else ''}.jsonl"
