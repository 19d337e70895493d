"""TQ on Table 5 at f=4, with what the paper leaves open done otherwise: each row compared with the paper's TQ."""

from dataclasses import replace

from robagg.lab.paper import table5, table5_short, tq_table3

EXPERIMENT = replace(
    table5_short.EXPERIMENT,
    name="tq-table5",
    title="CIFAR-10, rho=0.4, 2,000 rounds: TQ from other starts, and with a factor on its MADs",
    panels=(replace(table5_short.EXPERIMENT.panels[-1], rows=tq_table3.ROWS),),
    candidates=True,
    claims=(),
    notes=(*table5.EXPERIMENT.notes, table5_short.SHORT, *tq_table3.EXPERIMENT.notes),
)
