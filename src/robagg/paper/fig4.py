"""Figure 4: MNIST under IPM at f=6, accuracy against rho, each rule alone, with NNM and with Bucketing."""

from robagg.paper.axes import MIXERS, RHOS, choose_rules, vary
from robagg.paper.claims import Best, Fails, Helps
from robagg.paper.experiment import Experiment, Panel

EXPERIMENT = Experiment(
    name="fig4",
    title="MNIST, IPM, f=6: accuracy against heterogeneity",
    kind="lines",
    task="mnist",
    panels=tuple(
        Panel(
            label,
            choose_rules(label),
            vary("rho", RHOS),
            {"f": 6, "attack": "ipm", **mixer},
        )
        for label, mixer in MIXERS.items()
    ),
    columns="rho",
    claims=(
        Best("TQ is best for every rho", panels=("alone",)),
        Best("TQ is best for every rho, also with NNM", panels=("with NNM",)),
        Best("TQ is best for every rho, also with Bucketing", panels=("with Bucketing",)),
        Fails("TM and CM fail at rho >= 0.8", panels=("alone",), columns=("0.8", "0.9", "1.0"), rows=("TM", "CM")),
        Helps("NNM helps at rho <= 0.6", panels=("with NNM",), columns=("0.0", "0.2", "0.4", "0.5", "0.6")),
        Fails("NNM fails above rho = 0.8", panels=("with NNM",), columns=("0.9", "1.0")),
    ),
)
