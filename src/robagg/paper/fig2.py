"""Figure 2: MNIST, TQ against TQ with the true tau, over f and over rho; the attack is not stated, ours is IPM."""

from pathlib import Path

from robagg.paper.axes import RHOS, vary
from robagg.paper.claims import Alike
from robagg.paper.experiment import Experiment, Panel

ROWS = vary("rule", {"TQ": "tq", "TQ_t": "tqtrue"})

EXPERIMENT = Experiment(
    name="fig2",
    title="MNIST, IPM: TQ with the estimated and with the true tau",
    kind="lines",
    task="mnist",
    panels=(
        Panel("rho=0.5", ROWS, vary("f", range(1, 10)), {"rho": 0.5, "attack": "ipm"}),
        Panel("f=6", ROWS, vary("rho", RHOS), {"f": 6, "attack": "ipm"}),
    ),
    columns="f and rho",
    claims=(Alike("TQ is like TQ_t", pairs=(("TQ", "TQ_t"),)),),
    plugins=(str(Path(__file__).with_name("tq_true.py")),),
    notes=("TQ_t knows who is honest, so it exists for this figure only. The attack is not stated in the paper.",),
)
