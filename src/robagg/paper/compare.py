"""Ours beside the paper's: the difference of each cell, and how many are as near as its deviations allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robagg.paper.board import Board
from robagg.paper.claim import Spot
from robagg.paper.numbers import find_name, read_numbers, read_printed_worst

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
    def firm(self) -> bool:
        return self.deviation < FIRM

    @property
    def close(self) -> bool:
        return abs(self.difference) <= CLOSE


def compare(board: Board) -> dict[Spot, Pair]:
    """Each cell of ours that the paper has a number for; none for a quick look, whose data are others."""
    if board.experiment.numbers is None or board.plan.quick:
        return {}
    numbers = read_numbers(board.experiment.numbers)
    pairs = {}
    for (panel, row, column), value in board.means().items():
        known = numbers.get((find_name(panel), find_name(row), column))
        if known is not None:
            pairs[panel, row, column] = Pair(value, *known)
    return pairs


def find_paper_worst(board: Board, panel: str, row: str) -> float | None:
    """The true minimum of the paper's row; its printed worst case is another number in six rows."""
    if board.experiment.numbers is None or board.plan.quick:
        return None
    numbers = read_numbers(board.experiment.numbers)
    wanted = find_name(panel), find_name(row)
    return min((mean for (p, r, _), (mean, _) in numbers.items() if (p, r) == wanted), default=None)


def list_misprints(board: Board) -> list[str]:
    """Rows whose worst case in the paper is not its true minimum, in sentences."""
    if board.experiment.numbers is None or board.plan.quick:
        return []
    told = []
    for (panel, row), (printed, _) in read_printed_worst(board.experiment.numbers).items():
        least = find_paper_worst(board, panel, row)
        if least is not None and least < printed and panel in board.panels:
            told.append(f"{panel} {row} (printed {printed:.2f}, its minimum is {least:.2f})")
    return [f"The paper's worst case is not the minimum of its row in: {'; '.join(told)}."] if told else []


def summarise(pairs: dict[Spot, Pair]) -> list[str]:
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
    settled = [pair for spot, pair in main.items() if spot not in alie and spot not in mca and pair.firm]
    lines = [
        f"Within two of the paper's deviations and a point: {_share(pair.near for pair in main.values())}.",
        "Of the cells whose deviation in the paper is under 2 points, outside ALIE and MCA, within 1.5 points: "
        f"{_share(pair.close for pair in settled)}.",
    ]
    parts = {"ALIE's column": alie, **_divide(mca, by=1), **_divide(others, by=0)}
    for name, members in parts.items():
        if members:
            mean = sum(pair.difference for pair in members.values()) / len(members)
            near = _share(pair.close for pair in members.values())
            lines.append(f"{name}: within 1.5 points {near}, mean difference {mean:+.2f}.")
    for row, members in _divide({s: p for s, p in pairs.items() if find_name(s[1]) == "TQ"}, by=1).items():
        told = [
            f"{max((pair.difference for pair in own.values()), key=abs):+.2f} at {panel}"
            for panel, own in _divide(members, by=0).items()
        ]
        lines.append(f"{row}, the largest difference: {', '.join(told)}.")
    return lines


def measure_rows(pairs: dict[Spot, Pair]) -> dict[str, float]:
    """How far each row is from the paper's: the mean absolute difference over its cells, the nearest row first.

    >>> measure_rows({("f=6", "a", "IPM"): Pair(90.0, 96.0, 0.2), ("f=6", "b", "IPM"): Pair(95.0, 96.0, 0.2)})
    {'b': 1.0, 'a': 6.0}
    """
    rows: dict[str, list[float]] = {}
    for (_, row, _), pair in pairs.items():
        rows.setdefault(row, []).append(abs(pair.difference))
    return dict(sorted(((row, sum(v) / len(v)) for row, v in rows.items()), key=lambda item: item[1]))


def _divide(pairs: dict[Spot, Pair], *, by: int) -> dict[str, dict[Spot, Pair]]:
    """The cells of each panel (by=0) or row (by=1)."""
    parts: dict[str, dict[Spot, Pair]] = {}
    for spot, pair in pairs.items():
        parts.setdefault(spot[by], {})[spot] = pair
    return parts


def _share(flags: Iterable[bool]) -> str:
    found = list(flags)
    return f"{sum(found)} of {len(found)} ({100 * sum(found) / len(found):.0f} %)" if found else "none are there"
