"""The appendix: Fashion-MNIST, as Table 3."""

from dataclasses import replace

from robagg.paper import table3

EXPERIMENT = replace(
    table3.EXPERIMENT,
    name="appendix",
    title="Fashion-MNIST, rho=0.5: accuracy under six attacks",
    task="fashion",
    numbers=None,
)
