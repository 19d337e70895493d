"""What a change of one detail of the protocol does, from the runs of benchmarks/protocol.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import fmean

from records import RESULTS, read_rule

from robagg.paper.axes import RULES
from robagg.paper.board import Spot
from robagg.paper.compare import Pair

PROTOCOL = RESULTS / "protocol.jsonl"
MNIST = {
    "masks-kept": "dropout masks that are the same for all clients in all rounds",
    "masks-kept-warm": "such masks, and momenta that begin as a gradient",
    "masks-shared": "masks that all clients share, other ones each round",
}
CIFAR = {
    "group-norm": "GroupNorm in place of BatchNorm",
    "crops-shared": "crops that all clients share for 30 rounds",
    "crops-black": "crops that are black outside the image (as where images are cropped first and normalised then)",
    "crops-black-shared": "crops that are shared and black outside",
}
SAME = {change["rule"]: label for label, change in RULES.items() if label not in ("Krum", "MCA (median)")}
"""Rules that are the same here and in the paper."""


def tell_changes(details: Mapping[str, str], pairs: Mapping[Spot, Pair]) -> str:
    """How far cells are from the paper's with each change, and the table's runs of the same seed; empty: no runs.

    Left out are rules that are not the same, cells that collapse here or there, and those that the paper's own seeds
    disagree on.
    """
    name, panel = ("table3", "f=6") if details is MNIST else ("table5", "f=4")
    changed: dict[str, list[tuple[Spot, float, float]]] = {}
    for run in map(json.loads, PROTOCOL.read_text(encoding="utf-8").splitlines() if PROTOCOL.exists() else ()):
        rule, attack = run["cell"].split()
        spot = (panel, SAME.get(rule, rule), attack.upper())
        pair = pairs.get(spot)
        if run["change"] in details and pair is not None and pair.firm and min(pair.ours, pair.paper) > 15:
            without = find_run(name, rule, attack, panel=panel, seed=run["seed"])
            changed.setdefault(run["change"], []).append((spot, run["accuracy"], without))
    told = []
    for change in filter(changed.get, details):
        cells = changed[change]
        now, before = (fmean(abs(cell[k] - pairs[cell[0]].paper) for cell in cells) for k in (1, 2))
        each = ", ".join(
            f"{spot[1]} {spot[2]} {value:.1f}, {without:.1f} without ({pairs[spot].paper:.1f})"
            for spot, value, without in cells
        )
        few = each if len(cells) <= 6 else f"{len(cells)} cells"
        told.append(f"with {details[change]} {now:.1f} points off on average, without {before:.1f} ({few})")
    if not told:
        return ""
    return (
        "Tried alone, all else as stated, one seed, beside the table's run of that seed (rules that are the same here "
        "and there, cells whose deviation in the paper is under 2 points; `benchmarks/protocol.py`): "
        f"{'; '.join(told)}."
    )


def find_run(name: str, rule: str, attack: str, *, panel: str, seed: int) -> float:
    """The accuracy of a table's run with the task's own settings."""
    wanted = {"f": int(panel.removeprefix("f=")), "attack": attack, "seed": seed, "settings": {}}
    return next(float(run["accuracy"]) for run in read_rule(rule, name) if wanted.items() <= run["spec"].items())
