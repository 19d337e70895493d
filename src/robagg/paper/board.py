"""An experiment of the paper with its results: each cell's runs, found in a store by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from robagg.attacks import ALIE, IPM
from robagg.lab.lines import Record
from robagg.lab.store import Store
from robagg.paper.claims import Finding
from robagg.paper.experiment import QUICK_SETTINGS, Experiment, Place, Plan, place_store
from robagg.paper.experiments import EXPERIMENTS
from robagg.paper.numbers import Numbers, Spot, read_numbers
from robagg.paper.only import Only
from robagg.report.tables import Cell, sum_up
from robagg.tasks.base import tasks

Curve = list[tuple[int, float]]


@dataclass(frozen=True)
class Board:
    """The cells of an experiment; panels, and rows of a panel, of which nothing is there are left out."""

    experiment: Experiment
    plan: Plan
    cells: Mapping[Spot, Cell]
    curves: Mapping[Spot, Curve] = field(default_factory=dict)
    """Accuracy over the rounds, the mean over seeds."""
    wanted: int = 0
    """Runs in all."""
    found: int = 0
    absent: tuple[str, ...] = ()
    """Panels and rows of which nothing is there."""
    notes: tuple[str, ...] = ()
    beside: Mapping[Spot, float] = field(default_factory=dict)
    """Means of the other experiment that a claim compares with."""
    planned: tuple[Spot, ...] = ()
    """All cells, with or without runs."""

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(panel for panel, _, _ in self.cells))

    @property
    def by_attack(self) -> bool:
        """Whether columns are attacks, so that there is a worst case."""
        return self.experiment.columns == "attack" and self.experiment.kind != "curves"

    @property
    def name(self) -> str:
        """How its files are called."""
        return f"{self.experiment.name}{'.quick' if self.plan.quick else ''}"

    @property
    def title(self) -> str:
        """The experiment's, marked where this is not what the paper did."""
        marks = []
        if self.plan.quick:
            rounds = self.plan.rounds or QUICK_SETTINGS["rounds"]
            marks.append(f"QUICK LOOK on digits, {rounds} rounds, not the paper's experiment")
        elif self.plan.rounds not in (None, tasks.parse(self.experiment.task).settings.rounds):
            marks.append(f"{self.plan.rounds} rounds instead of the paper's")
        if self.plan.only.pairs:
            marks.append("only " + ", ".join(f"{name}={value}" for name, value in self.plan.only.pairs))
        return self.experiment.title + "".join(f" [{mark}]" for mark in marks)

    @property
    def numbers(self) -> Numbers:
        """The paper's numbers; none for a quick look, whose data are others."""
        table = self.experiment.numbers
        return {} if table is None or self.plan.quick else read_numbers(table)

    def rows(self, panel: str) -> list[str]:
        return list(dict.fromkeys(row for p, row, _ in self.cells if p == panel))

    def columns(self, panel: str) -> list[str]:
        return list(dict.fromkeys(column for p, _, column in self.cells if p == panel))

    def mean(self, spot: Spot) -> float | None:
        """The mean accuracy of a cell; None where there is none."""
        cell = self.cells.get(spot)
        return None if cell is None else cell.mean

    def means(self) -> dict[Spot, float]:
        """The mean of each cell that has one."""
        return {spot: value for spot in self.cells if (value := self.mean(spot)) is not None}

    def find_worst(self, panel: str, row: str) -> Cell | None:
        """The cell with the least mean of a row; None where one has no run, so that the least is not known."""
        cells = [cell for (p, r, _), cell in self.cells.items() if (p, r) == (panel, row)]
        return min(cells, key=lambda cell: cell.mean or 0.0) if all(cell.values for cell in cells) else None

    def find_best_worst(self, panel: str) -> list[str]:
        """The rows with the greatest worst case of a panel; none while a row's is not known, or where all fail."""
        rows = dict.fromkeys(row for p, row, _ in self.planned if p == panel)
        lost = {row for (p, row, _), cell in self.cells.items() if p == panel and cell.failed}
        cells = {row: self.find_worst(panel, row) for row in rows if row in self.rows(panel) and row not in lost}
        worst = {row: cell.mean or 0.0 for row, cell in cells.items() if cell is not None}
        greatest = max(worst.values(), default=0.0)
        return [row for row, value in worst.items() if value == greatest > 0 and len(worst) >= max(2, len(rows))]

    def check_claims(self) -> list[Finding]:
        """Whether the orderings hold that the paper claims."""
        means = self.means()
        missing = [spot for spot in self.planned if spot not in means]
        return [
            claim.check({**means, **(self.beside if claim.beside else {})}, missing) for claim in self.experiment.claims
        ]


def gather(experiment: Experiment, plan: Plan, store: str | Path) -> Board:
    """What a store has of an experiment; nothing is run."""
    board = _fill(experiment, plan, Store(store).read().records)
    return replace(board, beside=_look_beside(experiment, plan, Path(store)))


def _fill(experiment: Experiment, plan: Plan, records: Mapping[str, Record]) -> Board:
    places = experiment.lay(plan)
    filled = {(place.panel, place.row) for place in places if place.run.key in records}
    kept = [place for place in places if (place.panel, place.row) in filled]
    cells: dict[Spot, list[Record]] = {place.spot: [] for place in kept}
    for place in kept:
        if place.run.key in records:
            cells[place.spot].append(records[place.run.key])
    return Board(
        experiment,
        plan,
        {spot: sum_up(found) for spot, found in cells.items()},
        {spot: curve for spot, found in cells.items() if (curve := _average(found))},
        wanted=len(keys := {place.run.key for place in kept}),
        found=len(keys & records.keys()),
        absent=_list_absent(places, filled),
        notes=(*experiment.notes, *_list_strengths(kept)),
        planned=tuple(dict.fromkeys(place.spot for place in places)),
    )


def _list_absent(places: Iterable[Place], filled: set[tuple[str, str]]) -> tuple[str, ...]:
    """Names of panels that have nothing, of rows that have nothing anywhere, and of rows in the panels they lack."""
    panels, rows = {panel for panel, _ in filled}, {row for _, row in filled}
    empty, nowhere, lacking = dict[str, None](), dict[str, None](), dict[str, dict[str, None]]()
    for place in places:
        if place.panel not in panels:
            empty[place.panel] = None
        elif place.row not in rows:
            nowhere[place.row] = None
        elif (place.panel, place.row) not in filled:
            lacking.setdefault(place.panel, {})[place.row] = None
    return (*empty, *(f"{panel} {', '.join(lacks)}" for panel, lacks in lacking.items()), *nowhere)


def _look_beside(experiment: Experiment, plan: Plan, store: Path) -> dict[Spot, float]:
    """Means of the experiment that a claim compares with: from this store, or from the one of that name beside it."""
    name = next((claim.beside for claim in experiment.claims if claim.beside), None)
    other = None if name is None else EXPERIMENTS[name]
    if not isinstance(other, Experiment):
        return {}
    beside = store.with_name(place_store(other.name, quick=plan.quick).name)
    records = Store(store).read().records | Store(beside).read().records
    means = _fill(other, replace(plan, only=Only()), records).means()
    return {(f"{name} {panel}", row, column): value for (panel, row, column), value in means.items()}


def _average(records: list[Record]) -> Curve:
    """The mean over seeds at the rounds that all of them have."""
    curves = [dict(map(tuple, record["curve"])) for record in records if record["status"] == "ok"]
    if not curves:
        return []
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    return [(t, sum(curve[t] for curve in curves) / len(curves)) for t in shared]


def _list_strengths(places: Iterable[Place]) -> list[str]:
    """How strong the attacks are whose strength comes from a formula: the paper does not state ALIE's."""
    strengths: dict[str, dict[str, float]] = {}
    for place in places:
        attack = place.run.parts.attack
        if isinstance(attack, ALIE | IPM):
            name = f"{type(attack).__name__} by its formula: {'z' if isinstance(attack, ALIE) else 'c0'} = "
            strengths.setdefault(name, {})[f"f={place.run.f}"] = attack.strength(place.run.n, place.run.f)
    notes = [name + ", ".join(f"{z:.3g} ({f})" for f, z in by_f.items()) for name, by_f in strengths.items()]
    weak = any(z <= 0 for name, by_f in strengths.items() if name.startswith("ALIE") for z in by_f.values())
    return [*notes, *(["ALIE with z <= 0 is no attack"] if weak else [])]
