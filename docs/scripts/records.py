"""The committed records, as the guides' tables read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from robagg.lab.store import Record
from robagg.report.tables import Cell, sum_up

RESULTS = Path(__file__).parents[2] / "results"
STORES = RESULTS / "paper"


def sum_up_cells(runs: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """Runs that `load` gave, summed up by rule and attack."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        cells.setdefault((run["method"], run["attack"]), []).append(run)
    return {spot: sum_up(found) for spot, found in cells.items()}
