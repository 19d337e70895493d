"""Names that every doctest may use, and one thread a process: tests run side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace.update(torch=torch, np=np, nn=nn)
