"""Table 5: CIFAR-10 at rho=0.4, seven rules under six attacks, f = 2, 3, 4."""

from robagg.lab.paper.axes import ATTACKS, RULES
from robagg.lab.paper.claims import Best, BestWorst
from robagg.lab.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="table5",
    title="CIFAR-10, rho=0.4: accuracy under six attacks",
    kind="table",
    task="cifar10",
    panels=tuple(Panel(f"f={f}", RULES, ATTACKS, {"f": f, "rho": 0.4}) for f in (2, 3, 4)),
    seeds=3,
    numbers="table5",
    claims=(
        BestWorst("TQ has the best worst case for every f"),
        Best("TQ is best under BF, LF and IPM", columns=("BF", "LF", "IPM")),
        Best("Huber or MCA is on top under ALIE and MIMIC", columns=("ALIE", "MIMIC"), rows=("Huber", "MCA")),
    ),
    notes=("Training images are cropped and flipped at random; the paper does not say whether its are.",),
)
