"""TQ on Table 3 at f=6, with what the paper leaves open done otherwise: each row compared with the paper's TQ."""

from dataclasses import replace
from pathlib import Path

from robagg.paper import table3
from robagg.paper.axes import ATTACKS, vary
from robagg.paper.experiment import Panel
from robagg.paper.tq_varied import NORMAL

LAST = "TQ (from the last)"
ROWS = vary(
    "rule",
    {
        "TQ": "tq",
        "TQ (from the mean)": "tqvaried(from_mean=True)",
        LAST: "tqlast",
        "TQ (factor)": f"tqvaried(factor={NORMAL})",
        "TQ (mean; factor)": f"tqvaried(from_mean=True, factor={NORMAL})",
    },
)

EXPERIMENT = replace(
    table3.EXPERIMENT,
    name="tq-table3",
    title="MNIST, rho=0.5: TQ from other starts, and with a factor on its MADs",
    panels=(Panel("f=6", ROWS, ATTACKS, {"f": 6, "rho": 0.5}),),
    candidates=True,
    claims=(),
    plugins=(str(Path(__file__).with_name("tq_varied.py")),),
    notes=(
        "The paper does not say where TQ starts. Ours starts from the median; here also from the mean of all rows, and "
        f"from the last aggregate. The factor is {NORMAL}, with which the MAD of normal data is their deviation.",
    ),
)
