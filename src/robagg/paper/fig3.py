"""Figure 3: MNIST under IPM at rho=0.5, accuracy against f, each rule alone, with NNM and with Bucketing."""

from robagg.paper.axes import MIXERS, choose_rules, vary
from robagg.paper.claims import Best, Fails, Falls
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="fig3",
    title="MNIST, IPM, rho=0.5: accuracy against the number of Byzantine clients",
    kind="lines",
    task="mnist",
    panels=tuple(
        Panel(
            label,
            choose_rules(label),
            vary("f", range(1, 10)),
            {"rho": 0.5, "attack": "ipm", **mixer},
        )
        for label, mixer in MIXERS.items()
    ),
    columns="f",
    claims=(
        Best("TQ is best for every f", panels=("alone",)),
        Best("TQ is best for every f, also with NNM", panels=("with NNM",)),
        Best("TQ is best for every f, also with Bucketing", panels=("with Bucketing",)),
        Fails("Bucketing fails for f > 4", panels=("with Bucketing",), columns=("5", "6", "7", "8", "9")),
        Falls("Huber's accuracy falls with f", panels=("alone",), rows=("Huber",)),
    ),
)
