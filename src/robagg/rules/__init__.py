"""One file per rule. A new file with a Rule in it is found by its name; the names here are for type checkers."""

from robagg.rules.bulyan import Bulyan
from robagg.rules.caf import CAF
from robagg.rules.cc import CC
from robagg.rules.cge import CGE
from robagg.rules.cm import CM
from robagg.rules.ctma import CTMA
from robagg.rules.dnc import DnC
from robagg.rules.fltrust import FLTrust
from robagg.rules.foolsgold import FoolsGold
from robagg.rules.huber import Huber
from robagg.rules.krum import Krum
from robagg.rules.mca import MCA
from robagg.rules.mda import MDA
from robagg.rules.meamed import Meamed
from robagg.rules.mean import Mean
from robagg.rules.monna import MoNNA
from robagg.rules.multikrum import MultiKrum
from robagg.rules.onecentre import OneCentre
from robagg.rules.onemean import OneMean
from robagg.rules.rfa import RFA
from robagg.rules.scaledfilter import ScaledFilter
from robagg.rules.signguard import SignGuard
from robagg.rules.smea import SMEA
from robagg.rules.spectralfilter import SpectralFilter
from robagg.rules.tm import TM
from robagg.rules.tq import TQ

__all__ = [
    "Bulyan",
    "FLTrust",
    "FoolsGold",
    "MoNNA",
    "CAF",
    "CC",
    "CGE",
    "CM",
    "CTMA",
    "DnC",
    "Huber",
    "Krum",
    "MCA",
    "MDA",
    "Meamed",
    "Mean",
    "MultiKrum",
    "OneCentre",
    "OneMean",
    "RFA",
    "SMEA",
    "SignGuard",
    "ScaledFilter",
    "SpectralFilter",
    "TM",
    "TQ",
]
