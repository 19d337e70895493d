"""TQ on Table 5 at f=4, with what the paper leaves open done otherwise: each row compared with the paper's TQ."""

from dataclasses import replace

from robagg.lab.paper import table5_short, tq_table3
from robagg.lab.paper.axes import ATTACKS
from robagg.lab.paper.experiment import Panel

EXPERIMENT = replace(
    table5_short.EXPERIMENT,
    name="tq-table5",
    title="CIFAR-10, rho=0.4, 2,000 rounds: TQ from other starts, and with a factor on its MADs",
    panels=(Panel("f=4", tq_table3.ROWS, ATTACKS, {"f": 4, "rho": 0.4}),),
    candidates=True,
    claims=(),
    plugins=tq_table3.EXPERIMENT.plugins,
    notes=(*table5_short.EXPERIMENT.notes, *tq_table3.EXPERIMENT.notes),
)
