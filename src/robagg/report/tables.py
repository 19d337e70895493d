"""Tables from records: mean and deviation over seeds, the worst case over attacks."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robagg._core.registry import fold, split_call
from robagg.attacks import attacks
from robagg.attacks.strength import ByFormula
from robagg.report.measures import MEASURES, Measure, find_measure, list_measures, split_measures

_SPEC = ("task", "split", "n", "f", "attack", "method", "measure")
_OURS = (
    "rule mixers core rho seed key place status finished accuracy diverged done curve notes plugins trace seconds "
    "version robagg python torch numpy device device_name threads kernels error traceback metrics detection value"
)
"""Columns of a flat record that are no setting."""


STUDENT = (4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t at 97.5 % for 2, 3, ... degrees of freedom; for more it is less, and taken as the last."""


@dataclass(frozen=True)
class Cell:
    """The runs of one cell, which differ in their seed."""

    values: tuple[float, ...] = ()
    """Of the runs that came to their end; one that diverged is no use and counts as the worst there is."""
    diverged: int = 0
    failed: int = 0
    measure: Measure = MEASURES["accuracy"]

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values) if self.values else None

    @property
    def merit(self) -> float:
        """The mean where more is better, minus the mean where less is; the lowest there is where there is none."""
        return -math.inf if self.mean is None else -self.mean if self.measure.lower else self.mean

    @property
    def deviation(self) -> float | None:
        """Over the seeds, with n - 1 below; None for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def half(self) -> float | None:
        """Half of the 95 % interval of the mean over the seeds, by Student's t; None below three."""
        count = len(self.values)
        if count < 3 or self.deviation is None:
            return None
        return STUDENT[min(count - 3, len(STUDENT) - 1)] * self.deviation / math.sqrt(count)

    @property
    def interval(self) -> tuple[float, float] | None:
        """That interval; of percentages within 0 to 100."""
        if self.half is None or self.mean is None:
            return None
        low, high = self.mean - self.half, self.mean + self.half
        return (max(0.0, low), min(100.0, high)) if self.measure.percent else (low, high)

    @property
    def word(self) -> str:
        """What stands in a number's place where all runs diverged, or none came to its end."""
        if self.values:
            return "diverged" if self.diverged == len(self.values) else ""
        return "failed" if self.failed else "-"


@dataclass(frozen=True)
class Table:
    """Cells by row and column; all else is the same in all of them, and stands in the title."""

    title: str
    group: tuple[tuple[str, Any], ...]
    axes: tuple[str, str]
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    cells: Mapping[tuple[Any, Any], Cell]

    def find_worst(self, row: Any) -> Cell | None:
        """The cell with the worst mean in a row; None: no cell has any."""
        cells = [self.cells[row, column] for column in self.columns if (row, column) in self.cells]
        return min((cell for cell in cells if cell.values), key=lambda cell: cell.merit, default=None)


def tabulate(
    records: Iterable[Mapping[str, Any]],
    *,
    rows: str = "method",
    columns: str = "attack",
    measures: Sequence[str] = (),
) -> list[Table]:
    """Tables from flat records, one for each combination of what is neither row, column nor seed.

    Rows and columns are fields of the records; `minmax.scale` is a parameter of an attack, whose records alone are
    shown then. Each of the measures has tables of its own, or, with "measure" as rows or columns, a row or a column; by
    default it is the accuracy, or all there are as rows or columns.

    >>> records = [{"method": m, "attack": a, "seed": s, "f": 2, "accuracy": v, "diverged": None, "status": "ok"}
    ...            for m, a, s, v in [("tq", "ipm", 0, 90.0), ("tq", "ipm", 1, 92.0), ("tq", "lf", 0, 80.0)]]
    >>> table = tabulate(records)[0]
    >>> table.title, table.rows, table.columns, table.cells["tq", "ipm"].mean, table.find_worst("tq").mean
    ('f=2', ('tq',), ('ipm', 'lf'), 91.0, 80.0)
    """
    flat = list(records)
    every = "measure" in (rows, columns)
    asked = [*measures] or ([measure.name for measure in list_measures(flat)] if every else ["accuracy"])
    if every or asked != ["accuracy"]:
        flat = split_measures(flat, asked)
    for axis in (rows, columns):
        flat = _part_strength(flat, axis) if "." in axis else flat
    for axis in (rows, columns):
        if flat and not any(axis in record for record in flat):
            known = [*_SPEC, "rho", "mixers", "core", *_settings(flat)]
            raise ValueError(
                f"rows and columns must be one of {', '.join(known)}, or a parameter of an attack, such as alie.z, "
                f"got {axis!r}, which no record has"
            )
    by_rho = "rho" in (rows, columns)
    hidden = {rows, columns}
    hidden |= {"method"} if {rows, columns} & {"mixers", "core"} else set()
    grouping = [name for name in (*_SPEC, *_settings(flat)) if name not in hidden]
    if {rows, columns} & {"mixers", "core"}:
        grouping += [name for name in ("mixers", "core") if name not in (rows, columns)]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in flat:
        shown = {**record, "split": _hide_rho(record)} if by_rho else record
        groups.setdefault(tuple(_freeze(shown.get(name)) for name in grouping), []).append(record)
    tables: list[Table] = []
    orders = [_order(_freeze(record.get(axis)) for record in flat) for axis in (rows, columns)]
    for values, members in groups.items():
        group = tuple((name, value) for name, value in zip(grouping, values, strict=True) if value not in (None, ""))
        cells: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
        for record in members:
            cells.setdefault((_freeze(record.get(rows)), _freeze(record.get(columns))), []).append(record)
        title = ", ".join(str(value) if name in ("task", "split") else f"{name}={value}" for name, value in group)
        made = {place: sum_up(runs) for place, runs in cells.items()}
        own = {row for row, _ in made}, {column for _, column in made}
        down, across = (tuple(filter(own[k].__contains__, order)) for k, order in enumerate(orders))
        tables.append(Table(title, group, (rows, columns), down, across, made))
    return sorted(
        tables,
        key=lambda table: [_rank(asked.index(value) if name == "measure" else value) for name, value in table.group],
    )


def _part_strength(records: Sequence[Mapping[str, Any]], axis: str) -> list[Mapping[str, Any]]:
    """The records of one attack, `minmax.scale` of `minmax`, with this parameter as a field of its own."""
    attack, _, parameter = axis.partition(".")
    found: list[Mapping[str, Any]] = []
    for record in records:
        try:
            name, given = split_call(record["attack"], "attack")
        except ValueError:  # a text that is none of ours
            continue
        if fold(name) == fold(attack):
            rest = ", ".join(f"{key}={value!r}" for key, value in given.items() if key != parameter)
            value = given[parameter] if parameter in given else _read_default(record, parameter)
            found.append({**record, "attack": f"{name}({rest})" if rest else name, axis: value})
    if not any(record[axis] is not None for record in found):
        raise ValueError(f"{axis!r} is not in the records: no attack {attack!r} in them has a parameter {parameter!r}")
    return found


def _read_default(record: Mapping[str, Any], parameter: str) -> Any:
    """What a parameter is that an attack's text leaves out: a strength by a formula is its number."""
    try:
        attack = attacks.parse(record["attack"])
    except (TypeError, ValueError):  # of a plugin that is not loaded
        return None
    value = getattr(attack, parameter, None)
    if value is None and isinstance(attack, ByFormula) and attack.parameter == parameter:
        value = float(f"{attack.strength(record['n'], record['f']):.3g}")
    return value


def list_troubles(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each run that failed or diverged."""
    troubles = []
    for r in records:
        place = f"{r['task']}, {r['method']}, {r['attack']}, {r['split']}, n={r['n']}, f={r['f']}, seed={r['seed']}"
        if r["status"] != "ok":
            troubles.append(f"failed: {place}: {r.get('error', '')}")
        elif r["diverged"] is not None:
            troubles.append(f"diverged in round {r['diverged']}: {place}")
    return troubles


def _settings(records: Sequence[Mapping[str, Any]]) -> list[str]:
    known = {*_OURS.split(), *_SPEC}
    return list(dict.fromkeys(name for record in records for name in record if name not in known))


def _hide_rho(record: Mapping[str, Any]) -> Any:
    """A record's split without the rho that its row or column tells; of the paper's split nothing is left."""
    if record.get("rho") is None:
        return record.get("split")
    name, parameters = split_call(record["split"], "split")
    rest = ", ".join(f"{key}={value!r}" for key, value in parameters.items() if key != "rho")
    return (None if name == "rho" else name) if not rest else f"{name}({rest})"


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return tuple(_freeze(item) for item in value) if isinstance(value, list | tuple) else value


def sum_up(runs: Sequence[Mapping[str, Any]]) -> Cell:
    """The cell of runs that differ in their seed: of the accuracy, or of what `split_measures` made of them."""
    measure = find_measure(runs[0].get("measure", "accuracy") if runs else "accuracy")
    done = [r for r in runs if r["status"] == "ok"]
    wild = [r["diverged"] is not None and measure.lost is not None for r in done]
    counted = [
        r["value"] if "value" in r else measure.lost if lost else r["accuracy"]
        for r, lost in zip(done, wild, strict=True)
    ]
    diverged = sum(lost and value is not None for lost, value in zip(wild, counted, strict=True))
    return Cell(tuple(value for value in counted if value is not None), diverged, len(runs) - len(done), measure)


def _rank(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, "" if number else str(value))


def _order(values: Iterable[Any]) -> tuple[Any, ...]:
    """As they come, but numbers by size."""
    seen = list(dict.fromkeys(values))
    return tuple(sorted(seen) if all(isinstance(value, int | float) for value in seen) else seen)
