"""An experiment of the paper with its results: each cell's runs, found in a store by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from robagg.attacks import ALIE, IPM
from robagg.lab.store import Record, Store
from robagg.paper.catalogue import find
from robagg.paper.claim import Finding, Spot, name_beside
from robagg.paper.experiment import QUICK_SETTINGS, Experiment, Place, Plan, place_store
from robagg.paper.only import Only
from robagg.report.tables import Cell, sum_up

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
    beside: Mapping[str, Mapping[Spot, float]] = field(default_factory=dict)
    """Means of other experiments that a claim compares with, by their names."""
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
        elif self.plan.rounds not in (None, self.experiment.own_rounds):
            told = f"{self.experiment.own_rounds}" if "rounds" in self.experiment.settings else "the paper's"
            marks.append(f"{self.plan.rounds} rounds instead of {told}")
        if self.plan.only.pairs:
            marks.append("only " + ", ".join(f"{name}={value}" for name, value in self.plan.only.pairs))
        return self.experiment.title + "".join(f" [{mark}]" for mark in marks)

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

    def find_worst(self, panel: str, row: str) -> tuple[str, float] | None:
        """The column with the least mean, and that mean; None where a cell has no run, so that it cannot be told."""
        told = {column: self.mean((panel, row, column)) for column in self.columns(panel)}
        known = {column: value for column, value in told.items() if value is not None}
        if len(known) < len(told) or not known:
            return None
        column = min(known, key=lambda column: known[column])
        return column, known[column]

    def find_best_worst(self, panel: str) -> list[str]:
        """The rows with the greatest worst case of a panel; none while a row's cannot be told, or where all fail."""
        rows = dict.fromkeys(row for p, row, _ in self.planned if p == panel)
        lost = {row for (p, row, _), cell in self.cells.items() if p == panel and cell.failed}
        worst = {
            row: found[1] for row in rows if row not in lost and (found := self.find_worst(panel, row)) is not None
        }
        if len(worst) < max(2, len(rows)) or not any(worst.values()):
            return []
        return [row for row, value in worst.items() if value == max(worst.values())]

    def check_claims(self) -> list[Finding]:
        """Whether the orderings hold that the paper claims."""
        means = self.means()
        missing = [spot for spot in self.planned if spot not in means]
        return [
            claim.check({**means, **self.beside.get(claim.beside, {})}, missing) for claim in self.experiment.claims
        ]


def gather(experiment: Experiment, plan: Plan, store: str | Path) -> Board:
    """What a store has of an experiment; nothing is run."""
    return _fill(experiment, plan, Store(store).read().records, _look_beside(experiment, plan, Path(store)))


def _fill(
    experiment: Experiment, plan: Plan, records: Mapping[str, Record], beside: Mapping[str, Mapping[Spot, float]]
) -> Board:
    places = experiment.lay(plan)
    filled = {(place.panel, place.row) for place in places if place.run.key in records}
    kept = [place for place in places if (place.panel, place.row) in filled]
    cells: dict[Spot, list[Record]] = {}
    for place in kept:
        cells.setdefault((place.panel, place.row, place.column), []).extend(
            [records[place.run.key]] if place.run.key in records else []
        )
    return Board(
        experiment,
        plan,
        {spot: sum_up(found) for spot, found in cells.items()},
        {spot: curve for spot, found in cells.items() if (curve := _average(found))},
        wanted=len(keys := {place.run.key for place in kept}),
        found=len(keys & records.keys()),
        absent=_tell_absent(places, filled),
        notes=(*experiment.notes, *_tell_strengths(kept)),
        beside=beside,
        planned=tuple(dict.fromkeys((place.panel, place.row, place.column) for place in places)),
    )


def _tell_absent(places: list[Place], filled: set[tuple[str, str]]) -> tuple[str, ...]:
    """Names of panels that have nothing, of rows that have nothing anywhere, and of rows in the panels they lack."""
    panels, rows = {panel for panel, _ in filled}, {row for _, row in filled}
    empty = dict.fromkeys(place.panel for place in places if place.panel not in panels)
    nowhere = dict.fromkeys(place.row for place in places if place.panel in panels and place.row not in rows)
    lacking: dict[str, dict[str, None]] = {}
    for place in places:
        if place.panel in panels and place.row in rows and (place.panel, place.row) not in filled:
            lacking.setdefault(place.panel, {})[place.row] = None
    return (*empty, *(f"{panel} {', '.join(lacks)}" for panel, lacks in lacking.items()), *nowhere)


def _look_beside(experiment: Experiment, plan: Plan, store: Path) -> dict[str, dict[Spot, float]]:
    """Means of the experiments that claims compare with: from this store, or from the one of that name beside it."""
    found = {}
    for name in dict.fromkeys(claim.beside for claim in experiment.claims if claim.beside):
        other = find(name)
        assert isinstance(other, Experiment)
        records: dict[str, Record] = {}
        for path in (store, store.with_name(place_store(name, quick=plan.quick).name)):
            records |= Store(path).read().records
        means = _fill(other, replace(plan, only=Only()), records, {}).means()
        found[name] = {(name_beside(name, panel), row, column): v for (panel, row, column), v in means.items()}
    return found


def _average(records: list[Record]) -> Curve:
    """The mean over seeds at the rounds that all of them have."""
    curves = [dict(map(tuple, record["curve"])) for record in records if record["status"] == "ok"]
    if not curves:
        return []
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    return [(t, sum(curve[t] for curve in curves) / len(curves)) for t in shared]


def _tell_strengths(places: list[Place]) -> list[str]:
    """How strong the attacks are whose strength comes from a formula: the paper does not state ALIE's."""
    told: dict[str, dict[str, float]] = {}
    for place in places:
        attack = place.run.parts.attack
        if isinstance(attack, ALIE | IPM):
            letter = "z" if isinstance(attack, ALIE) else "c0"
            strengths = told.setdefault(f"{type(attack).__name__} by its formula: {letter} = ", {})
            strengths[f"f={place.run.f}"] = attack.strength(place.run.n, place.run.f)
    notes = [name + ", ".join(f"{z:.3g} ({f})" for f, z in strengths.items()) for name, strengths in told.items()]
    weak = any(z <= 0 for name, strengths in told.items() if name.startswith("ALIE") for z in strengths.values())
    return [*notes, *(["ALIE with z <= 0 is no attack"] if weak else [])]
