"""All experiments of the paper by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from robagg._core.registry import fold, unknown
from robagg.paper.experiment import Experiment
from robagg.paper.walk import Computation

NAMES = (
    "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "table3", "table4", "table5",
    "table5-plain", "table5-batch", "table5-early", "table5-short", "appendix", "nlp", "example1", "theorem2",
    "mca-sigma", "tq-table3", "tq-table5",
)  # fmt: skip


def find(name: str, *, sigmas: Sequence[float] = ()) -> Experiment | Computation:
    """The experiment of that name; `sigmas` are candidates for mca-sigma.

    Example:
        >>> find("Table3").title
        'MNIST, rho=0.5: accuracy under six attacks'
    """
    known = {fold(listed): listed for listed in NAMES}
    if fold(name) not in known:
        raise ValueError(unknown("experiment of the paper", name, NAMES, known))
    chosen = known[fold(name)]
    if sigmas and chosen != "mca-sigma":
        raise ValueError(f"candidates for sigma are for mca-sigma, not for {chosen}")
    module = importlib.import_module(f"robagg.paper.{chosen.replace('-', '_')}")
    found: Experiment | Computation = module.make_experiment(sigmas) if sigmas else module.EXPERIMENT
    return found


def describe(experiment: Experiment | Computation) -> str:
    """A few words about how much it is."""
    if isinstance(experiment, Computation):
        return "no training"
    panels = experiment.panels
    cells = sum(len(panel.rows) * len(panel.columns) for panel in panels)
    return f"{cells} cells, {experiment.seeds} seed{'s' * (experiment.seeds > 1)}"
