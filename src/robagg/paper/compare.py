"""Ours beside the paper's: the difference of each cell, and how many are as near as its deviations allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robagg.paper.board import Board
from robagg.paper.numbers import Spot, find_name, read_printed_worst

DEVIATIONS, POINTS = 2.0, 1.0
"""A cell is near when it differs by no more than two of the paper's deviations and a point."""
FIRM, CLOSE = 2.0, 1.5
"""Cells whose deviation in the paper is under 2 points are firm; those within 1.5 points of it are close."""


@dataclass(frozen=True)
class Pair:
    """A mean of ours and the paper's mean and deviation."""

    ours: float
    paper: float
    deviation: float

    @property
    def difference(self) -> float:
        return self.ours - self.paper

    @property
    def near(self) -> bool:
        """Within two of the paper's deviations and a point.

        >>> Pair(93.0, 96.0, 1.1).near, Pair(92.0, 96.0, 1.1).near
        (True, False)
        """
        return abs(self.difference) <= DEVIATIONS * self.deviation + POINTS

    @property
    def close(self) -> bool:
        return abs(self.difference) <= CLOSE


Pairs = dict[Spot, Pair]


def compare(board: Board) -> Pairs:
    """Each cell of ours that the paper has a number for."""
    names = {(panel, row, column): (find_name(panel), find_name(row), column) for panel, row, column in board.cells}
    return {
        spot: Pair(value, *board.numbers[names[spot]])
        for spot, value in board.means().items()
        if names[spot] in board.numbers
    }


def find_paper_worst(board: Board, panel: str, row: str) -> float | None:
    """The true minimum of the paper's row; its printed worst case is another number in six rows."""
    wanted = find_name(panel), find_name(row)
    return min((mean for (p, r, _), (mean, _) in board.numbers.items() if (p, r) == wanted), default=None)


def list_misprints(board: Board) -> list[str]:
    """Rows whose worst case in the paper is not its true minimum, in a sentence."""
    rows = []
    printed = read_printed_worst(board.experiment.numbers) if board.experiment.numbers else {}
    for (panel, row), worst in printed.items():
        least = find_paper_worst(board, panel, row)
        if least is not None and least < worst and panel in board.panels:
            rows.append(f"{panel} {row} (printed {worst:.2f}, its minimum is {least:.2f})")
    return [f"The paper's worst case is not the minimum of its row in: {'; '.join(rows)}."] if rows else []


def summarise(pairs: Pairs) -> list[str]:
    r"""How near ours are, in sentences; what hangs on unstated parameters apart.

    That is ALIE's column, MCA's rows, and panels that do one of the paper's in another way.

    >>> pairs = {("f=6", "TQ", "IPM"): Pair(96.0, 96.4, 0.2), ("f=6", "TQ", "ALIE"): Pair(90.0, 93.4, 0.2)}
    >>> print(*summarise(pairs), sep="\n")
    Within two of the paper's deviations and a point: 1 of 2 (50 %).
    Of the cells whose deviation in the paper is under 2 points, outside ALIE and MCA, within 1.5 points:
    1 of 1 (100 %).
    ALIE's column: within 1.5 points 0 of 1 (0 %), mean difference -3.40.
    TQ, the largest difference: -3.40 at f=6.
    """
    if not pairs:
        return []
    main = {spot: pair for spot, pair in pairs.items() if find_name(spot[0]) == spot[0]}
    others = {spot: pair for spot, pair in pairs.items() if spot not in main}
    alie = {spot: pair for spot, pair in main.items() if spot[2] == "ALIE"}
    mca = {spot: pair for spot, pair in main.items() if find_name(spot[1]) == "MCA" and spot not in alie}
    settled = [pair for spot, pair in main.items() if spot not in alie and spot not in mca and pair.deviation < FIRM]
    lines = [
        f"Within two of the paper's deviations and a point: {_share(pair.near for pair in main.values())}.",
        "Of the cells whose deviation in the paper is under 2 points, outside ALIE and MCA, within 1.5 points: "
        f"{_share(pair.close for pair in settled)}.",
    ]
    parts = {"ALIE's column": [*alie.values()] or None, **_divide(mca, by=1), **_divide(others, by=0)}
    for name, members in parts.items():
        if members:
            mean = sum(pair.difference for pair in members) / len(members)
            near = _share(pair.close for pair in members)
            lines.append(f"{name}: within 1.5 points {near}, mean difference {mean:+.2f}.")
    farthest = [
        f"{max((pair.difference for pair in members), key=abs):+.2f} at {panel}"
        for panel, members in _divide({s: p for s, p in pairs.items() if s[1] == "TQ"}, by=0).items()
    ]
    return [*lines, *([f"TQ, the largest difference: {', '.join(farthest)}."] if farthest else [])]


def _divide(pairs: Pairs, *, by: int) -> dict[str, list[Pair]]:
    """The cells of each panel (by=0) or row (by=1)."""
    parts: dict[str, list[Pair]] = {}
    for spot, pair in pairs.items():
        parts.setdefault(spot[by], []).append(pair)
    return parts


def _share(flags: Iterable[bool]) -> str:
    found = list(flags)
    return f"{sum(found)} of {len(found)} ({100 * sum(found) / len(found):.0f} %)" if found else "none are there"
