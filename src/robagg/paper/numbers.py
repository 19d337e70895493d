"""The paper's own numbers: mean and deviation of each cell of its three tables."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

Numbers = dict[tuple[str, str, str], tuple[float, float]]
"""By panel (f=5), row (TQ) and column (IPM)."""


def read_numbers(table: str) -> Numbers:
    """The cells of a table, without its worst-case column, which is not the true minimum in six rows.

    Example:
        >>> read_numbers("table3")["f=6", "TQ", "IPM"]
        (96.38, 0.32)
    """
    return {place: cell for place, cell in _read(table).items() if place[2] != "worst"}


def read_printed_worst(table: str) -> dict[tuple[str, str], tuple[float, float]]:
    """The worst-case column as printed, by panel and row."""
    return {place[:2]: cell for place, cell in _read(table).items() if place[2] == "worst"}


def find_name(label: str) -> str:
    """The paper's name for a row or panel of ours: it has one MCA where we have two, and one evaluation.

    >>> find_name("MCA (median)"), find_name("f=4 (test batches)")
    ('MCA', 'f=4')
    """
    return label.split(" (")[0]


@cache
def _read(table: str) -> Numbers:
    content = json.loads((files("robagg.paper") / "tables.json").read_text(encoding="utf-8"))
    found = next((part for name, part in content.items() if name.split("_")[0] == table), None)
    if found is None:
        raise ValueError(
            f"the paper's numbers are there for {', '.join(n.split('_')[0] for n in content)}; not {table}"
        )
    return {
        (f"{found['axis']}={value}", row, column): (cell[0], cell[1])
        for value, rows in found["values"].items()
        for row, cells in rows.items()
        for column, cell in cells.items()
    }
