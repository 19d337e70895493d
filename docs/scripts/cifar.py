"""What is known of CIFAR-10's differences to the paper: a part of the page that paper.py writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from statistics import fmean, median

from changes import CIFAR, SAME, tell_changes
from records import RESULTS, measure_cut, read_rule

from robagg.lab.paper.table5_short import LAST
from robagg.report.board import Board, Spot
from robagg.report.compare import Pair, compare, measure_rows

STATISTICS = RESULTS / "running-statistics.jsonl"
"""TQ's runs on CIFAR-10, each evaluated with running BatchNorm statistics that were moved in three ways."""


def tell_cifar(boards: dict[str, Board]) -> str:
    """What is known of CIFAR-10's differences: the drop of the rate, TQ's start, augmentation, BatchNorm's policy."""
    cropped, plain = (compare(boards[name]) for name in ("table5", "table5-plain"))
    return "\n\n".join(
        [
            tell_nearest(boards, cropped),
            tell_as_stated(cropped, plain),
            tell_offset(cropped, plain),
            tell_changes(CIFAR, cropped),
            tell_statistics(),
            tell_phases(),
        ]
    )


def tell_as_stated(cropped: dict[Spot, Pair], plain: dict[Spot, Pair]) -> str:
    """The differences with 3,000 rounds, with images cropped and as they are."""
    shared = [spot for spot in cropped if spot in plain]
    rows = [measure_rows({spot: pairs[spot] for spot in shared}) for pairs in (cropped, plain)]
    listed = ", ".join(f"{row} {distance:.1f} and {rows[1][row]:.1f}" for row, distance in rows[0].items())
    ours = [spot for spot in shared if spot[1] == "TQ"]
    ways = [tell_gaps({spot: pairs[spot].difference for spot in ours}) for pairs in (cropped, plain)]
    return (
        "**As the paper states it** ([table5](paper/table5.md)): 3,000 rounds, f=4; TQ with three seeds, the others "
        "with one. The paper does not say whether training images are cropped and flipped at random; ours are, in the "
        "cells listed here, and nearly all end above the paper's, by 2 to 6 points for most. Krum and MCA are other "
        "rules here than there. The rows that were also run with images as they are, one seed "
        "([table5-plain](paper/table5-plain.md)), differ from the paper's, in points a cell, with cropped images and "
        f"without, by: {listed}. TQ against the paper's: cropped {ways[0]}; as they are {ways[1]}."
    )


def tell_offset(cropped: Mapping[Spot, Pair], plain: Mapping[Spot, Pair]) -> str:
    """How much of the differences is one number, the same for all cells."""
    same = [spot for spot in cropped if spot[1] != "Krum" and not spot[1].startswith("MCA")]
    shared = [spot for spot in same if spot in plain]
    near, middle = count_near(cropped, same)
    return (
        f"With cropped images the table is the paper's but for a constant: of the {len(same)} cells of rules that are "
        f"the same there {near} lie within 1.5 points of {middle:+.1f}. Of the {len(shared)} cells that were run both "
        f"ways {count_near(cropped, shared)[0]} lie so near to one constant with cropped images, "
        f"{count_near(plain, shared)[0]} without. That speaks for cropping in the paper, and for a difference that "
        "adds about the same to every cell, as the later drop of the rate does."
    )


def tell_nearest(boards: Mapping[str, Board], cropped: Mapping[Spot, Pair]) -> str:
    """The setting nearest to the paper's numbers: the rate drops earlier, and TQ begins at the last aggregate."""
    short = {spot: pair.difference for spot, pair in compare(boards["table5-short"]).items() if spot[0] == "f=4"}
    others = {spot: gap for spot, gap in short.items() if spot[1] in SAME.values() and spot[1] != "TQ"}
    stated = {spot: cropped[spot].difference for spot in others}
    middle, level = take_median(stated)
    (after, off), (constant, off_constant), (before, off_before) = map(measure_fit, (others, level, stated))
    misses = ", ".join(f"{spot[1]} {spot[2]} {gap:+.1f}" for spot, gap in others.items() if abs(gap) > 1.5)
    last = {spot: gap for spot, gap in short.items() if spot[1] == LAST}
    starts = measure_rows(compare(boards["tq-table5"]))
    mnist = measure_rows(compare(boards["tq-table3"]))
    return (
        "**The nearest setting** ([table5-short](paper/table5-short.md)): images cropped and flipped at random, 2,000 "
        "rounds, so that the rate drops at round 1,500, and TQ from the last aggregate. TQ, three seeds, against the "
        f"paper's: {tell_gaps(last)}; the largest difference is {max(map(abs, last.values())):.1f} points. Of the "
        f"{len(others)} cells of RFA, TM, CM and Huber, one seed, {after} are within 1.5 points of the paper's, "
        f"{off:.1f} off on average; with 3,000 rounds {before} and {off_before:.1f}, and with a constant of "
        f"{middle:+.1f} taken from these {constant} and {off_constant:.1f}. Left are {misses}. The "
        f"mean difference is {fmean(others.values()):+.1f}. The paper says 3,000 rounds and a drop at 0.75 "
        "T, which is round 2,250, and not where TQ starts. The round was chosen because it fits RFA, TM, CM and Huber "
        "best, from their curves of 3,000 rounds; the start is the nearest of those in "
        f"[tq-table5](paper/tq-table5.md), in points a cell: {tell_rows(starts)}. On MNIST the start makes no "
        f"difference ([tq-table3](paper/tq-table3.md): {tell_rows(mnist)}). After a drop accuracy rises by about a "
        "tenth of a point in a hundred rounds, so 3,000 rounds with the drop at 1,500 may be nearer still; that was "
        "not run."
    )


def tell_gaps(gaps: Mapping[Spot, float]) -> str:
    """A row's differences, attack by attack."""
    return ", ".join(f"{column} {gap:+.1f}" for (_, _, column), gap in gaps.items())


def tell_rows(distances: Mapping[str, float]) -> str:
    return ", ".join(f"{row} {distance:.1f}" for row, distance in distances.items())


def measure_fit(gaps: Mapping[Spot, float]) -> tuple[int, float]:
    """How many differences are at most 1.5 points, and how many points they are on average."""
    return sum(abs(gap) <= 1.5 for gap in gaps.values()), fmean(map(abs, gaps.values()))


def count_near(pairs: Mapping[Spot, Pair], spots: Iterable[Spot]) -> tuple[int, float]:
    """How many differences lie within 1.5 points of their median, and the median."""
    middle, level = take_median({spot: pairs[spot].difference for spot in spots})
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
    last = read_rule("tqlast", "tq-table5")
    first = {run["spec"]["attack"].upper(): run for run in last if run["spec"]["seed"] == 0}
    drops = ", ".join(f"{fmean(run['trace']['honest_dropped']):.1f} under {attack}" for attack, run in first.items())
    return (
        "Under all attacks but ALIE TQ is at first the median and averages later: from about the twentieth round tau "
        "is less than any client's distance from the median, and all are cut; once gradients agree more it keeps them. "
        "The share of the recorded rounds (every twentieth) in which nine of ten honest clients or more are cut, a "
        f"seed each, and in brackets where the run ends: {'; '.join(told)}. Under BF and MIMIC the number goes with "
        "when that ends: the runs in which it never does end lowest. From the last aggregate, 2,000 rounds, this "
        f"share is {100 * max(map(measure_cut, last)):.0f} % in all {len(last)} runs, and of 21 honest clients it "
        f"drops, in seed 0, {drops} a round."
    )
