"""Figure 9: as Figure 8, two clients each."""

from dataclasses import replace

from robagg.paper import fig8
from robagg.paper.claims import Lower

EXPERIMENT = replace(
    fig8.EXPERIMENT,
    name="fig9",
    title="CIFAR-10, mixed attacks, f=12: accuracy over the rounds",
    panels=tuple(replace(panel, fixed={**panel.fixed, "f": 12}) for panel in fig8.EXPERIMENT.panels),
    claims=(*fig8.EXPERIMENT.claims, Lower("all fall with f, from 6 to 12", beside="fig8")),
)
