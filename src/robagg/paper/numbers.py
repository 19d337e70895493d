"""The paper's own numbers: mean and deviation of each cell of its three tables."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

Spot = tuple[str, str, str]
"""Panel (f=5), row (TQ) and column (IPM)."""
Numbers = dict[Spot, tuple[float, float]]


def read_numbers(table: str) -> Numbers:
    """The cells of a table, without its worst-case column, which is not the true minimum in six rows.

    Example:
        >>> read_numbers("table3")["f=6", "TQ", "IPM"]
        (96.38, 0.32)
    """
    return {place: cell for place, cell in _read(table).items() if place[2] != "worst"}


def read_printed_worst(table: str) -> dict[tuple[str, str], float]:
    """The worst-case column as printed, by panel and row."""
    return {place[:2]: mean for place, (mean, _) in _read(table).items() if place[2] == "worst"}


def find_name(label: str) -> str:
    """The paper's name for a row or panel of ours: it has one MCA where we have two, and one evaluation.

    >>> find_name("MCA (median)"), find_name("f=4 (test batches)")
    ('MCA', 'f=4')
    """
    return label.split(" (")[0]


@cache
def _read(table: str) -> Numbers:
    content = json.loads((files("robagg.paper") / "tables.json").read_text(encoding="utf-8"))
    tables = {name.split("_")[0]: part for name, part in content.items()}
    if table not in tables:
        raise ValueError(f"the paper's table must be one of {', '.join(tables)}, got {table}")
    return {
        (f"{tables[table]['axis']}={value}", row, column): (cell[0], cell[1])
        for value, rows in tables[table]["values"].items()
        for row, cells in rows.items()
        for column, cell in cells.items()
    }
