"""Table 5: CIFAR-10 at rho=0.4, seven rules under six attacks, f = 2, 3, 4.

The paper does not say what BatchNorm goes by in evaluation: running statistics here, and for TQ's row also the
statistics of each test batch.
"""

from dataclasses import replace

from robagg.paper.axes import ATTACKS, RULES
from robagg.paper.claims import Best, BestWorst
from robagg.paper.experiment import Experiment, Panel

PANELS = tuple(Panel(f"f={f}", RULES, ATTACKS, {"f": f, "rho": 0.4}) for f in (2, 3, 4))
BY_BATCH = " (test batches)"
"""How the labels of panels end that are evaluated so."""
LABELS = tuple(panel.label for panel in PANELS)
_PANELS_BY_BATCH = tuple(
    replace(
        panel,
        label=f"{panel.label}{BY_BATCH}",
        rows={"TQ": RULES["TQ"]},
        fixed={**panel.fixed, "settings": {"statistics": "batch"}},
    )
    for panel in PANELS
)
CROPS = "Training images are cropped and flipped at random; the paper does not say whether its are."

EXPERIMENT = Experiment(
    name="table5",
    title="CIFAR-10, rho=0.4: accuracy under six attacks",
    kind="table",
    task="cifar10",
    panels=(*PANELS, *_PANELS_BY_BATCH),
    seeds=3,
    numbers="table5",
    claims=(
        BestWorst("TQ has the best worst case for every f", LABELS),
        Best("TQ is best under BF, LF and IPM", LABELS, ("BF", "LF", "IPM")),
        Best("Huber or MCA is on top under ALIE and MIMIC", LABELS, ("ALIE", "MIMIC"), rows=("Huber", "MCA")),
    ),
    notes=(
        CROPS,
        "The paper does not say what BatchNorm goes by in evaluation. Here it is running statistics; in the panels "
        "(test batches), which are runs of their own, it is the statistics of each test batch, of at most 128 images.",
    ),
)
