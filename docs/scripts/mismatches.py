"""Which of our numbers are not the paper's, and why, as far as it is known: a part of the page that paper.py writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean

from changes import MNIST, tell_changes
from cifar import tell_cifar
from records import STORES, measure_cut, read_records, read_rule

from robagg.lab.store import Record
from robagg.paper.axes import ATTACKS
from robagg.paper.board import Board, Spot
from robagg.paper.compare import Pair, compare
from robagg.report.formats import render_rows
from robagg.splits import splits

Belongs = Callable[[str, str, Pair], bool]
REASONS: dict[str, tuple[Belongs, str]] = {
    "Collapsed in both": (
        lambda row, column, pair: max(pair.ours, pair.paper) < 15,
        "A model that has collapsed names one label for most images, which is right for 8.9 to 11.4 % of them; a run "
        "that diverged counts as 0.",
    ),
    "ALIE": (
        lambda row, column, pair: column == "ALIE",
        "The paper does not state ALIE's strength; ours is the z of its formula. Rules that average what looks alike "
        "end above the paper's numbers, while RFA, Krum and TQ collapse in cells where the paper's do not (f=7, "
        "rho=0.6 and 0.7), in some seeds and not in others: near the strength that breaks a rule little decides. "
        "TQ at f=6 over ten seeds: 95.1, deviation 0.9; the paper has 93.4 with 0.6. A change of the initial weights "
        "by a part in a million is enough to break it there: see "
        "[speed and accuracy](performance.md#speed-and-accuracy).",
    ),
    "MCA": (
        lambda row, column, pair: row.startswith("MCA"),
        "The paper fixes MCA's width and does not state it. With the median of the distances MCA holds where the "
        "paper's does not (BF, IPM). Of the fixed widths tried, 5 is nearest to the paper's row: see "
        "[MCA's width](paper/mca-sigma.md).",
    ),
    "Krum": (
        lambda row, column, pair: row == "Krum",
        "The paper's Krum is another rule than ours (one row, the least sum of squared distances to its n-f nearest). "
        "Under GA the paper's reaches 96, which no single client's momentum does here (93); under BF it follows the "
        "liars, and ours never does. An average of a few rows, as in Multi-Krum, would explain both.",
    ),
    "CM and TM under BF and IPM": (
        lambda row, column, pair: row in ("CM", "TM") and column in ("BF", "IPM"),
        "Cells between learning and collapse: the paper's own deviations there reach 34 points, ours 22.",
    ),
    "Huber under IPM": (
        lambda row, column, pair: (row, column) == ("Huber", "IPM"),
        "Either about 83 or a collapse to under 12, by seed; the paper's deviation at f=5 is 47 points.",
    ),
}


def tell_mismatches(boards: dict[str, Board]) -> list[str]:
    """The cells that are not near the paper's, gathered under their reasons."""
    reasons = {title: reason for title, (_, reason) in REASONS.items()} | {"CIFAR-10": tell_cifar(boards)}
    far: dict[str, dict[Spot, Pair]] = {title: {} for title in [*reasons, "Others"]}
    for name in ("table3", "table4", "table5-early"):
        for spot, pair in compare(boards[name]).items():
            if not pair.near:
                far["CIFAR-10" if name == "table5-early" else find_reason(spot, pair)][spot] = pair
    parts = [
        "Ours, and the paper's in brackets, where they differ by more than two of its deviations and a point. On MNIST "
        "TQ's cells outside ALIE are all near, but nearly all lie below the paper's: by up to 1.2 points at rho=0.5, "
        "by up to 1.8 at rho=0.7. It is not the precision (float32 gives the same as tf32) nor how batches are drawn "
        "(below). Ours cuts 1.5 to 3.3 honest clients a round under GA, LF and IPM at f=6, rho=0.5."
    ]
    for title, cells in far.items():
        if cells:
            parts += [f"**{title}.** {reasons.get(title, 'No reason is known.')}", lay_out(cells)]
    masks = tell_changes(MNIST, compare(boards["table3"]))
    return [*parts, *([f"**MNIST, details.** {masks}"] if masks else []), *tell_figures()]


def find_reason(spot: Spot, pair: Pair) -> str:
    """The first of the reasons that a cell of MNIST belongs under."""
    return next((title for title, (belongs, _) in REASONS.items() if belongs(*spot[1:], pair)), "Others")


def lay_out(cells: Mapping[Spot, Pair]) -> str:
    """A line for each row of a panel that has such cells, a column for each attack under which there are any."""
    columns = [attack for attack in ATTACKS if any(column == attack for _, _, column in cells)]
    lines = [
        [panel, row, *(tell_pair(cells.get((panel, row, column))) for column in columns)]
        for panel, row in dict.fromkeys(spot[:2] for spot in cells)
    ]
    return render_rows("", ["at", "rule", *columns], lines, "markdown")


def tell_pair(pair: Pair | None) -> str:
    return "" if pair is None else f"{pair.ours:.1f} ({pair.paper:.1f})"


def measure_phases() -> dict[str, float]:
    """TQ's share of rounds in which it cuts nearly everyone, in the figures of mixed attacks."""
    runs = [run for name in ("fig8", "fig9") for run in read_rule("tq", name)]
    found = {(run["spec"]["f"], splits.parse(run["spec"]["split"])): measure_cut(run) for run in runs}
    return {f"f={f}, rho={split.rho}": found[f, split] for f, split in sorted(found, key=lambda at: (at[0], at[1].rho))}


def measure_followed(record: Record) -> float:
    """The share of the rounds in which a liar's row had a part."""
    return fmean(count > 0 for count in record["trace"]["byzantine_kept"])


def tell_figures() -> list[str]:
    """Why orderings of the figures do not hold, as far as the records tell."""
    parts = []
    kept: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for record in read_records("fig2").values() if (STORES / "fig2.jsonl").exists() else ():
        dropped = fmean(record["trace"]["honest_dropped"])
        kept["tqtrue" in record["spec"]["rule"]].append((measure_followed(record), dropped))
    if kept[False] and kept[True]:
        tq, true = ([sum(column) / len(column) for column in zip(*kept[k], strict=True)] for k in (False, True))
        parts.append(
            "**Figure 2.** Under IPM, TQ with the true tau is worse than TQ. The true tau is larger, because V, made "
            f"of MADs, is less than the honest variance: in the records TQ_t keeps liars in {100 * true[0]:.0f} % of "
            f"the rounds and drops {true[1]:.1f} honest clients a round, TQ keeps them in {100 * tq[0]:.1f} % and "
            f"drops {tq[1]:.1f}. The paper does not state the figure's attack; under one whose rows lie further away "
            "the two would be alike."
        )
    if all((STORES / f"{name}.jsonl").exists() for name in ("fig8", "fig9")):
        phases = ", ".join(f"{100 * share:.0f} % at {where}" for where, share in measure_phases().items())
        followed = fmean(measure_followed(record) for record in read_rule("krum", "fig8"))
        parts.append(
            "**Figures 8 and 9.** One seed. TQ is the best at rho=0.3, at f=12 by 0.8 points, and falls faster with "
            "rho than the others: the greater rho, the later it averages (see CIFAR-10 above), if ever. Nine of ten "
            f"honest clients or more are cut in this share of the recorded rounds: {phases}. At f=6, rho=0.4 and 0.5 "
            "MCA with the median width, which is not the paper's MCA, is on top; at f=12, rho=0.4 and 0.5 Krum, and "
            "RFA too is above TQ. f=12 is the most that n=25 allows; a TQ that cuts everyone is the median (CM). TQ "
            "from the last aggregate, which cuts few at f=4 (CIFAR-10 above), was not run here. Krum at f=6 follows a "
            f"liar in {100 * followed:.0f} % of the rounds, the one that plays ALIE, whose row lies near the mean; at "
            "f=12, where ALIE is stronger, it takes an honest row."
        )
    return parts
