"""MCA's fixed width: candidates on Table 3 at f=6, each row compared with the paper's."""

from collections.abc import Sequence
from dataclasses import replace

from robagg.paper import table3
from robagg.paper.axes import ATTACKS, vary
from robagg.paper.experiment import Experiment, Panel

CANDIDATES = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)


def make_experiment(sigmas: Sequence[float] = CANDIDATES) -> Experiment:
    """MCA with each width, and with the median of the distances, in the place of Table 3's rules.

    Example:
        >>> [*make_experiment([0.5]).panels[0].rows]
        ['MCA (median)', 'MCA (sigma=0.5)']
    """
    rules = {"MCA (median)": "mca"} | {f"MCA (sigma={sigma:g})": f"mca(sigma={sigma!r})" for sigma in sigmas}
    return replace(
        table3.EXPERIMENT,
        name="mca-sigma",
        title="MNIST, rho=0.5: MCA's width, which the paper does not state",
        panels=(Panel("f=6", vary("rule", rules), ATTACKS, {"f": 6, "rho": 0.5}),),
        seeds=1,
        candidates=True,
        claims=(),
    )


EXPERIMENT = make_experiment()
