"""Robust aggregation for federated learning: rules that up to f lying clients cannot move.

>>> import robagg as ra
>>> x = torch.randn(20, 1000)
>>> x[14:] = 1e30
>>> bool(torch.isfinite(ra.TQ(f=6)(x)).all())
True
"""

from robagg.captured import Captured
from robagg.liars import QuorumError
from robagg.mixers import NNM, Bucketing, Clipping
from robagg.rule import GramRule, Mixer, Pipe, Rule, SortedRule, parse
from robagg.rules import CC, CM, MCA, RFA, TM, TQ, Huber, Krum, Mean, MultiKrum
from robagg.sketch import Sketch
from robagg.train import train  # hides the package of that name: `from robagg.train import ...` still finds it
from robagg.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "CC",
    "CM",
    "MCA",
    "NNM",
    "RFA",
    "TM",
    "TQ",
    "Bucketing",
    "Captured",
    "Clipping",
    "GramRule",
    "Huber",
    "Krum",
    "Mean",
    "Mixer",
    "MultiKrum",
    "Pipe",
    "QuorumError",
    "Rule",
    "Sketch",
    "SortedRule",
    "Verdict",
    "parse",
    "train",
]
