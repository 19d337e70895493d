"""One file a split; a new file here is found by its name."""

from robagg.data.splits.dirichlet import Dirichlet
from robagg.data.splits.iid import IID
from robagg.data.splits.one_label import OneLabel
from robagg.data.splits.rho import Rho

__all__ = ["IID", "Dirichlet", "OneLabel", "Rho"]
