"""Who holds what: one file per split. A new file here is found by its name; the names are for type checkers."""

from robagg.splits.base import Split, shuffle, sizes_of, splits
from robagg.splits.dirichlet import Dirichlet
from robagg.splits.iid import IID
from robagg.splits.one_label import OneLabel
from robagg.splits.rho import Rho

__all__ = ["IID", "Dirichlet", "OneLabel", "Rho", "Split", "shuffle", "sizes_of", "splits"]
