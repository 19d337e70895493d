"""Figure 5: MNIST, rules that are told f or only f_max, six attacks; f and rho are not stated, ours are 6 and 0.5."""

from robagg.paper.axes import ATTACKS, vary
from robagg.paper.claims import Alike
from robagg.paper.experiment import Experiment, Panel

ROWS = vary(
    "rule",
    {
        f"{name}({told})": rule if told == "f" else f"{rule}(f=none)"
        for name, rule in {"TQ": "tq", "TM": "tm", "Krum": "krum"}.items()
        for told in ("f", "f_max")
    },
)

EXPERIMENT = Experiment(
    name="fig5",
    title="MNIST, f=6, rho=0.5: rules that know f and rules that assume the most, f_max=9",
    kind="bars",
    task="mnist",
    panels=(Panel("f=6", ROWS, ATTACKS, {"f": 6, "rho": 0.5}),),
    claims=(Alike("TQ(f_max) is like TQ(f)", pairs=(("TQ(f)", "TQ(f_max)"),)),),
    notes=("f and rho are not stated in the paper.",),
)
