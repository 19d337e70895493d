"""Arrays as a saved state holds them: tensors alone, which loading takes without running anybody's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

ARRAY = "numpy"
"""The key under which a NumPy array stands as a tensor."""


def to_plain(x: Any) -> Any:
    """Mappings, lists, tensors and NumPy arrays as dicts, lists and tensors on the CPU.

    >>> to_plain({"w": np.zeros(2)})
    {'w': {'numpy': tensor([0., 0.], dtype=torch.float64)}}
    """
    if isinstance(x, np.ndarray | np.generic):
        return {ARRAY: torch.from_numpy(np.array(x))}
    if isinstance(x, Tensor):
        plain = x.detach().cpu()
        whole = plain.untyped_storage().nbytes() == plain.nbytes
        return plain if whole else plain.clone()  # of a view, all of what it looks at would be saved
    if isinstance(x, Mapping):
        return {name: to_plain(part) for name, part in x.items()}
    return [to_plain(part) for part in x] if isinstance(x, list | tuple) else x


def unwrap(x: Any) -> Any:
    """A scalar of NumPy, as its sampling gives names and numbers, as Python's own, which JSON and a saved state hold.

    >>> unwrap(np.int64(3)), unwrap("site-1")
    (3, 'site-1')
    """
    return x.item() if isinstance(x, np.generic) else x


def from_plain(x: Any) -> Any:
    """What `to_plain` made it of."""
    if isinstance(x, dict):
        return x[ARRAY].numpy() if x.keys() == {ARRAY} else {name: from_plain(part) for name, part in x.items()}
    return [from_plain(part) for part in x] if isinstance(x, list) else x
