"""One file per task. A new file with a Task in it is found by its name; the names here are for type checkers."""

from robagg.tasks.agnews import AGNews
from robagg.tasks.agnews_minilm import AGNewsMiniLM
from robagg.tasks.base import Task, federate, tasks
from robagg.tasks.cifar10 import CIFAR10
from robagg.tasks.digits import Digits
from robagg.tasks.fashion import Fashion
from robagg.tasks.mnist import MNIST

__all__ = ["CIFAR10", "MNIST", "AGNews", "AGNewsMiniLM", "Digits", "Fashion", "Task", "federate", "tasks"]
