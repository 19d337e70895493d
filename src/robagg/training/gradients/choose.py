"""Which way clients' gradients are computed: what is fastest for the device and sure to be right for the model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from robagg.models.flat import Flat
from robagg.training.gradients.dense.engine import Dense
from robagg.training.gradients.looped import Looped, Work
from robagg.training.gradients.protocol import Engine
from robagg.training.shards import Shards


def choose_engine(
    model: nn.Module,
    flat: Flat,
    w: Tensor,
    work: Work,
    *,
    shards: Shards,
    precision: str | None = None,
    walks: bool = False,
) -> Engine:
    """The best engine. On a CPU that is the loop, or the dense batch where the model is of Linear layers alone.

    On a GPU it is the dense batch, which compares itself with the loop on a few samples first: a model that branches
    on the values of a whole batch may pass that, and then branches for all clients together.

    Args:
        shards: the clients' data, of which some are tried.
        precision: of gradients on a GPU; see `Settings`.
        walks: whether clients make local steps by optimisers of their own, which only the loop does.
    """
    on_cpu = w.device.type == "cpu"
    # On a CPU one large convolution is no faster than many small ones, but one large product is.
    plain = work.steps == 1 and all(map(_is_plain, model.modules()))
    if walks or (on_cpu and not plain):
        return Looped(model, flat, w, work)
    few = shards.draw(4, torch.Generator(w.device).manual_seed(0))
    example = shards.x[few], shards.y[few]
    dense = Dense(model, flat, w, work, example=example, precision=None if on_cpu else precision)
    # In its stead it takes `Mapped`, which on a CPU is no faster than the loop, and not for every model.
    return Looped(model, flat, w, work) if on_cpu and dense.note is not None else dense


def _is_plain(module: nn.Module) -> bool:
    """Whether it surely treats every sample by itself, with no parameters but a Linear's: torch's own and ours."""
    known = type(module).__module__.startswith(("torch.nn.", "robagg.models."))
    return known and (isinstance(module, nn.Linear) or not list(module.parameters(recurse=False)))
