"""One file per pre-aggregator. A new file with a Mixer in it is found; the names here are for type checkers."""

from robagg.mixers.arc import ARC
from robagg.mixers.bucketing import Bucketing
from robagg.mixers.clipping import Clipping
from robagg.mixers.medianclipping import MedianClipping
from robagg.mixers.nnm import NNM

__all__ = ["ARC", "Bucketing", "Clipping", "MedianClipping", "NNM"]
