"""All that the next rounds of a federation depend on, for going back and for going on elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from robagg.training.federation import Federation


def save(federation: Federation) -> dict[str, Any]:
    """A copy of the weights, momenta and memories, of what optimisers keep, and of all generators."""
    random = {name: g.get_state() for name, g in federation.random.items()} | {"asks": federation.asks.get_state()}
    on_cpu = federation.device.type == "cpu"
    random["dropout"] = torch.get_rng_state() if on_cpu else torch.cuda.get_rng_state(federation.device)
    tensors = {name: value.clone() for name, value in _name_tensors(federation).items()}
    return {"tensors": tensors, "random": random, "optimisers": [own.keep() for own in federation.optimisers]}


def restore(federation: Federation, saved: dict[str, Any]) -> None:
    """Go back to what was saved."""
    kept = _name_tensors(federation)
    for name, value in saved["tensors"].items():
        place = kept.get(name)
        fits = place is not None and (place.shape, place.dtype) == (value.shape, value.dtype)
        if fits or not name.startswith("buffer."):
            kept[name].copy_(value)  # in place, where a captured round writes
        else:  # a forward pass makes it again, in whatever size it needs
            owner, _, own = name.removeprefix("buffer.").rpartition(".")
            federation.model.get_submodule(owner).register_buffer(own, value.to(federation.device, copy=True))
    for optimiser, state in zip(federation.optimisers, saved["optimisers"], strict=True):
        optimiser.take_up(state)
    random = saved["random"]
    for name, g in federation.random.items():
        g.set_state(random[name])
    federation.asks.set_state(random["asks"])
    if federation.device.type == "cpu":
        torch.set_rng_state(random["dropout"])
    else:
        torch.cuda.set_rng_state(random["dropout"], federation.device)


def _name_tensors(federation: Federation) -> dict[str, Tensor]:
    """The tensors by names that no attack's own can meet."""
    named: dict[str, Tensor] = {name: getattr(federation, name) for name in ("w", "sent", "last", "running", "sums")}
    if federation.root is not None:
        named["root"] = federation.root.momenta.sent
    named |= {f"state.{name}": value for name, value in federation.state.items()}
    # A forward pass may change buffers, such as a spectral norm's.
    return named | {f"buffer.{name}": value for name, value in federation.model.named_buffers()}
