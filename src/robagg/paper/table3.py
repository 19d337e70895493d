"""Table 3: MNIST at rho=0.5, seven rules under six attacks, f = 5, 6, 7."""

from robagg.paper.axes import ATTACKS, CNN_RULES
from robagg.paper.claims import BestWorst
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="table3",
    title="MNIST, rho=0.5: accuracy under six attacks",
    kind="table",
    task="mnist",
    panels=tuple(Panel(f"f={f}", CNN_RULES, ATTACKS, {"f": f, "rho": 0.5}) for f in (5, 6, 7)),
    seeds=3,
    numbers="table3",
    claims=(BestWorst("TQ has the best worst case for every f"),),
)
