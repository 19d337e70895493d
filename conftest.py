"""Names that every doctest may use, one thread a process (tests run side by side), and draws that no order changes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from importlib.metadata import distributions
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from robagg.lab.plugins import forget, list_plugins

torch.set_num_threads(1)
ADAPTERS = {"flower": "flwr", "nvflare": "nvflare"}
"""Packages of ours and what they adapt, which may not be there: then their doctests cannot be looked for."""
INSTALLED = {distribution.name for distribution in distributions()}
collect_ignore_glob = [f"src/robagg/{name}/*" for name, wanted in ADAPTERS.items() if wanted not in INSTALLED]


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace.update(torch=torch, np=np, nn=nn)


@pytest.fixture(autouse=True)
def _draws_are_the_same_in_any_order() -> None:
    """What passed once passes again; ROBAGG_TEST_SEED asks for other draws."""
    seed = int(os.environ.get("ROBAGG_TEST_SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.fixture(autouse=True)
def _plugins_stay_in_their_test() -> Iterator[None]:
    """What a test makes known is not there for the next one: tests run in any order."""
    before = {plugin.source for plugin in list_plugins()}
    yield
    for plugin in list_plugins():
        if plugin.source not in before:
            forget(plugin.source)
