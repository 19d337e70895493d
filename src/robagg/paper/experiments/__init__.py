"""All experiments of the paper by name: on MNIST, on CIFAR-10, on text, and those without training."""

from __future__ import annotations

from robagg._core.registry import fold, unknown
from robagg.paper.experiment import Computation, Experiment
from robagg.paper.experiments import cifar10, mnist, text, theory

_LISTED: tuple[Experiment | Computation, ...] = (
    theory.FIG1,
    *(mnist.FIG2, mnist.FIG3, mnist.FIG4, mnist.FIG5),
    *(cifar10.FIG6, cifar10.FIG7, cifar10.FIG8, cifar10.FIG9),
    *(mnist.TABLE3, mnist.TABLE4, cifar10.TABLE5, mnist.APPENDIX, text.NLP),
    *(theory.EXAMPLE1, theory.THEOREM2),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _LISTED}


def find(name: str) -> Experiment | Computation:
    """The experiment of that name.

    Example:
        >>> find("Table3").title
        'MNIST, rho=0.5: accuracy under six attacks'
    """
    known = {fold(listed): listed for listed in EXPERIMENTS}
    if fold(name) not in known:
        raise ValueError(unknown("experiment of the paper", name, [*EXPERIMENTS], known))
    return EXPERIMENTS[known[fold(name)]]
