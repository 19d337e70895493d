"""Figure 7: as Figure 6, at rho=0.2."""

from dataclasses import replace

from robagg.paper import fig6

EXPERIMENT = replace(
    fig6.EXPERIMENT,
    name="fig7",
    title="CIFAR-10, f=4, rho=0.2: accuracy over the rounds",
    panels=tuple(replace(panel, fixed={**panel.fixed, "rho": 0.2}) for panel in fig6.EXPERIMENT.panels),
)
