"""Table 4: MNIST at f=6, seven rules under six attacks, rho = 0.6, 0.7."""

from robagg.paper.axes import ATTACKS, CNN_RULES
from robagg.paper.claims import BestWorst
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="table4",
    title="MNIST, f=6: accuracy under six attacks",
    kind="table",
    task="mnist",
    panels=tuple(Panel(f"rho={rho}", CNN_RULES, ATTACKS, {"f": 6, "rho": rho}) for rho in (0.6, 0.7)),
    seeds=3,
    numbers="table4",
    claims=(BestWorst("TQ has the best worst case for every rho"),),
)
