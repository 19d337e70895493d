"""Figure 6: CIFAR-10 at f=4, rho=0.3, accuracy over the rounds, a panel an attack."""

from robagg.paper.axes import ATTACKS, RULES
from robagg.paper.claims import Best
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
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
