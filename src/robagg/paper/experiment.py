"""An experiment of the paper: panels, each a grid of rows and columns, and the runs that fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robagg.lab.plugins import load_plugin
from robagg.lab.run import Run
from robagg.paper.axes import FIXED, Axis, Change
from robagg.paper.claims import Claim, Finding
from robagg.paper.numbers import Spot
from robagg.paper.only import Only
from robagg.tasks.base import tasks

QUICK_TASK = "digits"
QUICK_SETTINGS: Mapping[str, Any] = {"rounds": 200, "momentum": 0.97, "rate": 2.0}
"""With these digits are learnt in a second a run; less momentum would let LF and BF hide among the honest."""


@dataclass(frozen=True)
class Panel:
    """One grid: every row under every column, with some fields the same for all."""

    label: str
    rows: Axis
    columns: Axis
    fixed: Change = field(default_factory=dict)
    refuse: Callable[[str | None], str] | None = None
    """Why the panel cannot be run with the data in a folder; empty: it can."""


@dataclass(frozen=True)
class Place:
    """A run and the cell it belongs to; a cell has one run for each seed."""

    panel: str
    row: str
    column: str
    run: Run

    @property
    def spot(self) -> Spot:
        return self.panel, self.row, self.column


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
        numbers: the table of the paper's numbers that it is compared with.
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
    numbers: str | None = None
    claims: tuple[Claim, ...] = ()
    plugins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lay(self, plan: Plan | None = None) -> list[Place]:
        """All runs with their cells. The seed turns slowest, so that whole tables of the first seeds come first."""
        plan = plan or Plan()
        for plugin in self.plugins:
            load_plugin(plugin)
        seeds = range(plan.seeds or (1 if plan.quick else self.seeds))
        panels = self._shrink() if plan.quick else self.panels
        places = [place for seed in seeds for panel in panels for place in self._fill(panel, plan, seed)]
        if not places:
            raise ValueError(f"nothing of {self.name} is left by --only {dict(plan.only.pairs)}")
        return places

    def refuse(self, places: list[Place], root: str | None) -> dict[str, str]:
        """Panels among the places that cannot be run with the data in a folder, with the reason."""
        wanted = {place.panel for place in places if place.run.task != QUICK_TASK}
        reasons = {panel.label: panel.refuse(root) for panel in self.panels if panel.refuse and panel.label in wanted}
        return {label: reason for label, reason in reasons.items() if reason}

    def _shrink(self) -> list[Panel]:
        """The panels of a quick look: every second point of a line, and one panel for all tasks.

        MCA's fixed width is left out, which was found on another model, and so are panels with settings of their own.
        """
        step = 2 if self.kind == "lines" else 1
        panels: dict[str, Panel] = {}
        for panel in self.panels:
            if "settings" not in panel.fixed:
                label = QUICK_TASK if "task" in panel.fixed else panel.label
                rows = {name: row for name, row in panel.rows.items() if name != FIXED}
                columns = dict([*panel.columns.items()][::step])
                panels.setdefault(label, replace(panel, label=label, rows=rows, columns=columns))
        return [*panels.values()]

    def _fill(self, panel: Panel, plan: Plan, seed: int) -> Iterator[Place]:
        """The places of a panel that the plan keeps, with the runs of one seed."""
        for row, of_row in panel.rows.items():
            for column, of_column in panel.columns.items():
                run = self._make({**panel.fixed, **of_row, **of_column}, plan, seed)
                if plan.only.keeps(panel.label, row, run):
                    yield Place(panel.label, row, column, run)

    def _make(self, fields: dict[str, Any], plan: Plan, seed: int) -> Run:
        task = fields.pop("task", self.task)
        mixer, rule, rho = fields.pop("mixer", ""), fields.pop("rule"), fields.pop("rho")
        settings = fields.pop("settings", {})
        return Run(
            rule=f"{mixer} >> {rule}" if mixer else rule,
            split=f"rho(rho={rho!r})",
            task=QUICK_TASK if plan.quick else task,
            n=tasks.parse(task).n,
            seed=seed,
            settings={
                **(QUICK_SETTINGS if plan.quick else settings),
                **({} if plan.rounds is None else {"rounds": plan.rounds}),
            },
            **fields,
        )


@dataclass(frozen=True)
class Computed:
    """What a computation gave: a table, what it means, and the numbers of its picture."""

    head: tuple[str, ...]
    lines: list[list[str]]
    findings: list[Finding]
    picture: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Computation:
    """What is computed, from the number of random draws."""

    name: str
    title: str
    compute: Callable[[int], Computed]
    draws: int = 1
    quick_draws: int = 1


def place_store(name: str, *, quick: bool = False, given: str | Path | None = None) -> Path:
    """Where an experiment's records go: what was given, else results/paper where there is a results folder, else runs.

    >>> place_store("table3", quick=True).as_posix()
    'runs/paper/table3.quick.jsonl'
    """
    if given is not None:
        return Path(given)
    folder = Path("results/paper") if Path("results").is_dir() and not quick else Path("runs/paper")
    return folder / f"{name}{'.quick' if quick else ''}.jsonl"
