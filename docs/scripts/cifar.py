"""What is known of CIFAR-10's differences to the paper: a part of the page that paper.py writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from changes import CIFAR, SAME, tell_changes
from records import RESULTS, measure_cut, read_rule

from robagg.lab.paper.tq_table3 import LAST
from robagg.report.board import Board, Spot
from robagg.report.compare import CLOSE, Pair, compare, measure_rows

OTHERS = [row for row in SAME.values() if row != "TQ"]
STATISTICS = RESULTS / "running-statistics.jsonl"
"""TQ's runs on CIFAR-10, each evaluated with running BatchNorm statistics that were moved in three ways."""


def tell_cifar(boards: dict[str, Board]) -> str:
    """What is known of CIFAR-10's differences: the drop of the rate, TQ's start, augmentation, BatchNorm's policy."""
    cropped, plain, short = (
        {spot: pair for spot, pair in compare(boards[name]).items() if spot[0] == "f=4"}
        for name in ("table5", "table5-plain", "table5-short")
    )
    parts = [
        tell_nearest(boards, short),
        tell_choice(boards, cropped),
        tell_as_stated(boards, cropped, plain),
        tell_offset(cropped, plain),
        tell_changes(CIFAR, cropped),
        tell_statistics(),
        tell_phases(),
    ]
    return "\n\n".join(filter(None, parts))


def tell_nearest(boards: Mapping[str, Board], short: Mapping[Spot, Pair]) -> str:
    """The setting nearest to the paper's numbers: the rate drops earlier, and TQ begins at the last aggregate."""
    last, others = pick(short, [LAST]), pick(short, OTHERS)
    near, off = measure_fit(others)
    misses = ", ".join(f"{row} {column} {gap:+.1f}" for (_, row, column), gap in others.items() if abs(gap) > CLOSE)
    return (
        "The nearest of the settings tried, at f=4 ([table5-short](paper/table5-short.md)): images cropped and flipped "
        "at random, 2,000 rounds, so that the rate drops at round 1,500, and TQ from the last aggregate. TQ "
        f"({count_seeds(boards['table5-short'], LAST)}) against the paper's: {tell_gaps(last)}; the largest difference "
        f"is {max(map(abs, last.values())):.2f} points. Of the {len(others)} cells of {', '.join(OTHERS)} "
        f"({count_seeds(boards['table5-short'], *OTHERS)}) {near} are within 1.5 points of the paper's; they are "
        f"{off:.1f} points off on average, and {fmean(others.values()):+.1f} with the sign. Left are {misses}. Krum "
        "and MCA are not counted: they are other rules here than there."
    )


def tell_choice(boards: Mapping[str, Board], cropped: Mapping[Spot, Pair]) -> str:
    """How the nearest setting was found, and what that leaves open."""
    others = pick(cropped, OTHERS)
    curves = boards["table5"].curves
    near, off = measure_fit({spot: shift_drop(dict(curves[spot]), 1500) - cropped[spot].paper for spot in others})
    before, off_before = measure_fit(others)
    constant, rest = take_median(others)
    level, off_level = measure_fit(rest)
    starts, mnist = (compare(boards[name]) for name in ("tq-table5", "tq-table3"))
    moved = max(abs(pair.ours - mnist[panel, "TQ", column].ours) for (panel, _, column), pair in mnist.items())
    listed = ", ".join(
        f"{row} {distance:.1f} ({count_seeds(boards['tq-table5'], row)})"
        for row, distance in measure_rows(starts).items()
    )
    return (
        "The paper says 3,000 rounds and a drop at 0.75 T, which is round 2,250; it does not say where TQ starts. As "
        f"stated, of the same cells of {', '.join(OTHERS)} {before} are within 1.5 points, {off_before:.1f} off on "
        f"average ({level} and {off_level:.1f} once a constant of {constant:.1f} is subtracted). Round "
        "1,500 was chosen because it fits these cells best by an estimate from the curves of 3,000 rounds: the "
        f"accuracy around it and the step that the drop makes, {near} within 1.5 points, {off:.1f} off. The start was "
        "chosen among those of [tq-table5](paper/tq-table5.md), in points a cell from the paper's row: "
        f"{listed}. So the cells at f=4 do not test the setting. Those at f=2 and 3 would, and were not run; nor "
        "were TQ from the last aggregate with 3,000 rounds, 2,000 rounds with images as they are, and 3,000 rounds "
        "with the drop at 1,500, which may be nearer still, since after a drop accuracy rises by about a tenth of a "
        "point in a hundred rounds. On MNIST at f=6, rho=0.5 the last aggregate as start moves no cell by more than "
        f"{moved:.2f} points ([tq-table3](paper/tq-table3.md))."
    )


def shift_drop(curve: Mapping[int, float], at: int) -> float:
    """Where a run would have ended with a drop at another round than 2,250, 500 rounds before its end.

    The accuracy around that round, and the step that the drop made.
    """
    step = fmean(curve[t] for t in (2700, 2800)) - fmean(curve[t] for t in (2000, 2100, 2200))
    return fmean(curve[t] for t in (at - 100, at, at + 100)) + step


def tell_as_stated(boards: Mapping[str, Board], cropped: dict[Spot, Pair], plain: dict[Spot, Pair]) -> str:
    """The differences with 3,000 rounds, with images cropped and as they are."""
    shared = [spot for spot in cropped if spot in plain]
    rows = [measure_rows({spot: pairs[spot] for spot in shared}) for pairs in (cropped, plain)]
    listed = ", ".join(f"{row} {distance:.1f} and {rows[1][row]:.1f}" for row, distance in rows[0].items())
    ways = [tell_gaps(pick(pairs, ["TQ"])) for pairs in (cropped, plain)]
    return (
        "As the paper states it, 3,000 rounds ([table5](paper/table5.md)), at f=4: TQ with "
        f"{count_seeds(boards['table5'], 'TQ')}, the others with {count_seeds(boards['table5'], *OTHERS)}. The paper "
        "does not say whether training images are cropped and flipped at random; ours are, in the cells listed at the "
        "end of this part, and nearly all end above the paper's, by 2 to 6 points for most. The rows that were also "
        "run with images as they are, one seed ([table5-plain](paper/table5-plain.md)), differ from the paper's, in "
        f"points a cell, with cropped images and without, by: {listed}. TQ against the paper's: cropped {ways[0]}; as "
        f"they are {ways[1]}."
    )


def tell_offset(cropped: Mapping[Spot, Pair], plain: Mapping[Spot, Pair]) -> str:
    """How much of the differences is one number, the same for all cells."""
    same, plain_same = (pick(pairs, [*SAME.values()]) for pairs in (cropped, plain))
    near, middle = count_near(same)
    shared = {spot: same[spot] for spot in plain_same}
    return (
        f"With cropped images the table is mostly the paper's and a constant: of the {len(same)} cells of rules that "
        f"are the same there {near} lie within 1.5 points of {middle:+.1f}. Of the {len(shared)} cells that were run "
        f"both ways {count_near(shared)[0]} lie so near to one constant with cropped images, "
        f"{count_near(plain_same)[0]} without. That speaks for cropping in the paper, and for a difference that "
        "adds about the same to most cells."
    )


def pick(pairs: Mapping[Spot, Pair], rows: Sequence[str]) -> dict[Spot, float]:
    """The differences of some rows."""
    return {spot: pair.difference for spot, pair in pairs.items() if spot[1] in rows}


def count_seeds(board: Board, *rows: str) -> str:
    """How many seeds these rows have at f=4, in words."""
    counts = sorted({len(cell.accuracies) for (f, row, _), cell in board.cells.items() if f == "f=4" and row in rows})
    told = " to ".join(f"{count}" for count in dict.fromkeys((counts[0], counts[-1])))
    return f"{told} seed{'s' * (counts[-1] > 1)}"


def tell_gaps(gaps: Mapping[Spot, float]) -> str:
    """A row's differences, attack by attack."""
    return ", ".join(f"{column} {gap:+.1f}" for (_, _, column), gap in gaps.items())


def measure_fit(gaps: Mapping[Spot, float]) -> tuple[int, float]:
    """How many differences are at most 1.5 points, and how many points they are on average."""
    return sum(abs(gap) <= CLOSE for gap in gaps.values()), fmean(map(abs, gaps.values()))


def count_near(gaps: Mapping[Spot, float]) -> tuple[int, float]:
    """How many differences lie within 1.5 points of their median, and the median."""
    middle, level = take_median(gaps)
    return measure_fit(level)[0], middle


def take_median(gaps: Mapping[Spot, float]) -> tuple[float, dict[Spot, float]]:
    """The median of differences, and what they are without it."""
    middle = median(gaps.values())
    return middle, {spot: gap - middle for spot, gap in gaps.items()}


def tell_statistics() -> str:
    """Whether the running statistics of BatchNorm, whose policy the paper does not state, explain a difference."""
    runs = [json.loads(line) for line in STATISTICS.read_text(encoding="utf-8").splitlines()]
    most = max(abs(run[way] - run["mean"]) for run in runs for way in ("median", "sequential"))
    return (
        f"It is not BatchNorm's policy, which is not stated either: in {len(runs)} runs of TQ the models were also "
        "evaluated with running statistics moved by one client after the other, as a loop over clients that share "
        f"one model leaves them, and by the clients' median, and no accuracy differs by more than {most:.2f} points "
        "(`benchmarks/running_statistics.py`; the cropped runs of seed 0 there are other ones than the table's)."
    )


def tell_phases() -> str:
    """In how many rounds TQ on CIFAR-10 cuts everyone and so is the median, and what that does to the end."""
    told = []
    for attack in ("ga", "lf", "ipm", "alie", "bf", "mimic"):
        runs = [run for run in read_rule("tq", "table5") if run["spec"]["attack"] == attack and run["spec"]["f"] == 4]
        pairs = ", ".join(f"{100 * measure_cut(run):.0f} % ({run['accuracy']:.1f})" for run in runs)
        told.append(f"{attack.upper()} {pairs}")
    short, last = (
        [run["trace"]["honest_dropped"] for run in read_rule(rule, "tq-table5")] for rule in ("tq", "tqlast")
    )
    return (
        "Under all attacks but ALIE TQ is at first the median and averages later: from about the twentieth round tau "
        "is less than any client's distance from the median, and all are cut; once gradients agree more it keeps them. "
        "The share of the recorded rounds in which nine of ten honest clients or more are cut, a seed each, and in "
        f"brackets where the run ends: {'; '.join(told)}. Under BF and MIMIC the number goes with when that ends: the "
        "runs in which it never does end lowest. From the last aggregate, 2,000 rounds, never more than "
        f"{max(map(max, last)):.0f} of 21 are cut in {len(last)} runs, {fmean(map(fmean, last)):.1f} on average; from "
        f"the median, 2,000 rounds, up to {max(map(max, short)):.0f}, {fmean(map(fmean, short)):.1f} on average."
    )
