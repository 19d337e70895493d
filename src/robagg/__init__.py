"""Robust aggregation for federated learning: aggregation rules that a minority of clients cannot drag away.

>>> import robagg as ra
>>> x = torch.randn(20, 1000)
>>> x[14:] = 1e30
>>> bool(torch.isfinite(ra.TQ(f=6)(x)).all())
True
"""

from robagg._core.contract import PluginError
from robagg._core.cuda_graph import Captured
from robagg._core.iterative import IterativeRule
from robagg._core.mixer import Mixer
from robagg._core.outcome import Pull, Treatment, Weights
from robagg._core.rule import GramRule, Pipe, Rule, parse
from robagg._core.sketch import Sketch
from robagg._core.sorted import SortedRule
from robagg._core.tolerance import F, QuorumError
from robagg._core.verdict import Verdict
from robagg._version import __version__ as __version__
from robagg.attacks import Attack, Setup, State, View
from robagg.data import Dataset
from robagg.lab.plugins import load_plugin
from robagg.mixers import ARC, NNM, Bucketing, Clipping, MedianClipping
from robagg.rules import (
    CAF,
    CC,
    CGE,
    CM,
    CTMA,
    MCA,
    MDA,
    RFA,
    SMEA,
    TM,
    TQ,
    Bulyan,
    DnC,
    FLTrust,
    FoolsGold,
    Huber,
    Krum,
    Meamed,
    Mean,
    MoNNA,
    MultiKrum,
    OneCentre,
    OneMean,
    ScaledFilter,
    SignGuard,
    SpectralFilter,
)
from robagg.splits import Split
from robagg.tasks import Task
from robagg.training import Result, Settings, train

__all__ = [
    "Bulyan",
    "FLTrust",
    "FoolsGold",
    "MoNNA",
    "CAF",
    "CC",
    "CM",
    "MCA",
    "NNM",
    "RFA",
    "TM",
    "Attack",
    "Bucketing",
    "Captured",
    "Clipping",
    "Dataset",
    "F",
    "GramRule",
    "Huber",
    "IterativeRule",
    "Krum",
    "Mean",
    "Mixer",
    "MultiKrum",
    "Pipe",
    "PluginError",
    "Pull",
    "QuorumError",
    "Result",
    "Rule",
    "Settings",
    "Setup",
    "Sketch",
    "SortedRule",
    "ScaledFilter",
    "SpectralFilter",
    "Split",
    "State",
    "TQ",
    "Task",
    "Treatment",
    "Verdict",
    "View",
    "Weights",
    "load_plugin",
    "parse",
    "train",
    "CGE",
    "CTMA",
    "DnC",
    "MDA",
    "Meamed",
    "OneCentre",
    "OneMean",
    "SMEA",
    "SignGuard",
    "ARC",
    "MedianClipping",
]
