"""One file per rule. A new file with a Rule in it is found by its name; the names here are for type checkers."""

from robagg.rules.caf import CAF
from robagg.rules.cc import CC
from robagg.rules.cm import CM
from robagg.rules.huber import Huber
from robagg.rules.krum import Krum
from robagg.rules.mca import MCA
from robagg.rules.mean import Mean
from robagg.rules.multikrum import MultiKrum
from robagg.rules.rfa import RFA
from robagg.rules.spectralfilter import SpectralFilter
from robagg.rules.tm import TM
from robagg.rules.tq import TQ

__all__ = ["CAF", "CC", "CM", "Huber", "Krum", "MCA", "Mean", "MultiKrum", "RFA", "SpectralFilter", "TM", "TQ"]
