"""The paper's experiments on CIFAR-10, n=25: Figures 6 to 9 and Table 5.

The paper does not say which statistics BatchNorm uses in evaluation: running ones here, and for TQ's row of Table 5
also those of each test batch.
"""

from dataclasses import replace

from robagg.paper.axes import ATTACKS, RULES
from robagg.paper.claims import Best, BestWorst, Falls, Lower
from robagg.paper.experiment import Experiment, Panel

FIG6 = Experiment(
    name="fig6",
    title="CIFAR-10, f=4, rho=0.3: accuracy over the rounds",
    kind="curves",
    task="cifar10",
    panels=tuple(Panel(label, RULES, {"": {}}, {"f": 4, "rho": 0.3, **attack}) for label, attack in ATTACKS.items()),
    claims=(
        Best("TQ is best under BF, LF and IPM", panels=("BF", "LF", "IPM")),
        Best("Huber or MCA is on top under ALIE and MIMIC", panels=("ALIE", "MIMIC"), rows=("Huber", "MCA")),
    ),
)

FIG7 = replace(
    FIG6,
    name="fig7",
    title="CIFAR-10, f=4, rho=0.2: accuracy over the rounds",
    panels=tuple(replace(panel, fixed={**panel.fixed, "rho": 0.2}) for panel in FIG6.panels),
)

FIG8 = Experiment(
    name="fig8",
    title="CIFAR-10, mixed attacks, f=6: accuracy over the rounds",
    kind="curves",
    task="cifar10",
    panels=tuple(
        Panel(f"rho={rho}", RULES, {"": {}}, {"f": 6, "rho": rho, "attack": "mixed"}) for rho in (0.3, 0.4, 0.5)
    ),
    claims=(Best("TQ is best under mixed attacks"), Falls("all fall with rho", along="panels")),
)

FIG9 = replace(
    FIG8,
    name="fig9",
    title="CIFAR-10, mixed attacks, f=12: accuracy over the rounds",
    panels=tuple(replace(panel, fixed={**panel.fixed, "f": 12}) for panel in FIG8.panels),
    claims=(*FIG8.claims, Lower("all fall with f, from 6 to 12", beside="fig8")),
)

_LABELS = ("f=2", "f=3", "f=4")
_STATED = tuple(Panel(f"f={f}", RULES, ATTACKS, {"f": f, "rho": 0.4}) for f in (2, 3, 4))
_BY_BATCH = tuple(
    replace(
        panel,
        label=f"{panel.label} (test batches)",
        rows={"TQ": RULES["TQ"]},
        fixed={**panel.fixed, "settings": {"statistics": "batch"}},
    )
    for panel in _STATED
)
TABLE5 = Experiment(
    name="table5",
    title="CIFAR-10, rho=0.4: accuracy under six attacks",
    kind="table",
    task="cifar10",
    panels=(*_STATED, *_BY_BATCH),
    seeds=3,
    numbers="table5",
    claims=(
        BestWorst("TQ has the best worst case for every f", _LABELS),
        Best("TQ is best under BF, LF and IPM", _LABELS, ("BF", "LF", "IPM")),
        Best("Huber or MCA is on top under ALIE and MIMIC", _LABELS, ("ALIE", "MIMIC"), ("Huber", "MCA")),
    ),
    notes=(
        "Training images are cropped and flipped at random; the paper does not say whether its are.",
        "The paper does not say which statistics BatchNorm takes in evaluation. Here they are running ones; in the "
        "panels (test batches), which are runs of their own, they are those of each test batch, of at most 128 images.",
    ),
)
