"""Figure 8: CIFAR-10, six attacks at once, one client each, rho = 0.3, 0.4, 0.5."""

from robagg.paper.axes import RULES
from robagg.paper.claims import Best, Falls
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="fig8",
    title="CIFAR-10, mixed attacks, f=6: accuracy over the rounds",
    kind="curves",
    task="cifar10",
    panels=tuple(
        Panel(f"rho={rho}", RULES, {"": {}}, {"f": 6, "rho": rho, "attack": "mixed"}) for rho in (0.3, 0.4, 0.5)
    ),
    claims=(Best("TQ is best under mixed attacks"), Falls("all fall with rho", along="panels")),
)
