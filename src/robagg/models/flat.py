"""Any model on one flat parameter vector: what a client sends, what a rule aggregates, what a step moves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call


def find_dtype(model: nn.Module) -> torch.dtype:
    """What the model computes in: the dtype of its first parameter with floating-point numbers.

    >>> find_dtype(nn.Linear(2, 1).double())
    torch.float64
    """
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


class Flat:
    """A model seen as a function of one vector of its d trainable parameters.

    Parameters with `requires_grad=False` are not part of the vector; a parameter used in several places is, once.

    Args:
        model: any `nn.Module` whose trainable parameters share one dtype and device.

    Example:
        >>> flat = Flat(nn.Linear(3, 2))
        >>> flat.d
        8
        >>> vector = flat.flatten()
        >>> flat.bind(vector)
        >>> _ = vector.zero_()
        >>> flat.model(torch.ones(1, 3)).tolist()
        [[0.0, 0.0]]
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError(f"{type(model).__name__} has no trainable parameter, so there is nothing to learn")
        for name, p in trainable.items():
            if nn.parameter.is_lazy(p):
                raise ValueError(f"{name} has no shape yet: call the lazy model on a batch first")
        kinds = {(p.dtype, str(p.device)) for p in trainable.values()}
        if len(kinds) > 1:
            found = " and ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise ValueError(f"all parameters must have one dtype and one device, got {found}")
        self.names: tuple[str, ...] = tuple(trainable)
        self.parameters: tuple[nn.Parameter, ...] = tuple(trainable.values())
        self.shapes: tuple[torch.Size, ...] = tuple(p.shape for p in self.parameters)
        self.sizes: list[int] = [p.numel() for p in self.parameters]
        self.d: int = sum(self.sizes)

    def flatten(self) -> Tensor:
        """A copy of the parameters as they are now: (d,)."""
        return self.join([p.detach() for p in self.parameters])

    def join(self, tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        """Lay tensors shaped like the parameters end to end: (d,).

        Args:
            tensors: one per parameter, in the order of `names`, such as `torch.autograd.grad` gives.
            out: (d,), written in place: a row of a stack.

        Example:
            >>> flat = Flat(nn.Linear(2, 1, bias=False))
            >>> flat.join([torch.tensor([[1.0, 2.0]])])
            tensor([1., 2.])
        """
        flats = [t.reshape(-1) for t, _ in zip(tensors, self.parameters, strict=True)]
        return torch.cat(flats) if out is None else torch.cat(flats, out=out)

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """The parameters by name as views into `vector`, without a copy: (..., d) gives (..., *shape) each.

        Example:
            >>> {name: tuple(view.shape) for name, view in Flat(nn.Linear(3, 2)).views(torch.zeros(8)).items()}
            {'weight': (2, 3), 'bias': (2,)}
        """
        self._check(vector)
        # One split, not a slice per parameter: its backward is one concatenation, not a padded vector per parameter.
        parts = torch.split(vector, self.sizes, dim=-1)
        triples = zip(self.names, parts, self.shapes, strict=True)
        return {name: part.view(*part.shape[:-1], *shape) for name, part, shape in triples}

    def bind(self, vector: Tensor) -> None:
        """Make the model's parameters views of `vector`, so that a step in place on it moves the model.

        The model takes the values of `vector`; moving the model to another device or dtype ends the bond.

        Args:
            vector: (d,), contiguous, of the parameters' dtype and device.
        """
        p = self.parameters[0]
        if vector.ndim != 1 or not vector.is_contiguous():
            raise ValueError(
                f"the vector to bind must be contiguous and of one dimension, got shape {tuple(vector.shape)}"
            )
        if (vector.dtype, vector.device) != (p.dtype, p.device):
            raise ValueError(
                f"the vector to bind must be of {p.dtype} on {p.device} like the parameters, "
                f"got {vector.dtype} on {vector.device}"
            )
        for parameter, view in zip(self.parameters, self.views(vector.detach()).values(), strict=True):
            parameter.data = view

    def forward(self, vector: Tensor, x: Tensor) -> Tensor:
        """The model's output with `vector` for its parameters: pure, so `torch.func.grad` and `vmap` take it.

        Args:
            vector: (d,).
            x: a batch.

        Example:
            >>> flat = Flat(nn.Linear(3, 2))
            >>> flat.forward(torch.zeros(8), torch.ones(1, 3)).tolist()
            [[0.0, 0.0]]
        """
        output: Tensor = functional_call(self.model, self.views(vector), (x,))
        return output

    def _check(self, vector: Tensor) -> None:
        if vector.ndim == 0 or vector.shape[-1] != self.d:
            raise ValueError(f"the vector must have d={self.d} numbers, got shape {tuple(vector.shape)}")
