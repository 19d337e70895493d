"""The paper's networks, small ones for digits, and any model on one flat parameter vector."""

from robagg.models import batchnorm
from robagg.models.build import MODELS, build
from robagg.models.cnn import CNN
from robagg.models.flat import Flat
from robagg.models.logistic import Logistic
from robagg.models.mlp import MLP
from robagg.models.resnet20 import ResNet20

__all__ = ["CNN", "MLP", "MODELS", "Flat", "Logistic", "ResNet20", "batchnorm", "build"]
