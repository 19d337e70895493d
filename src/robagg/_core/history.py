"""What each row has added up to over the rounds, for rules that judge a client by all that it has sent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from robagg._core.passes import Passes
from robagg._core.stack import Stack
from robagg.kernels.types import Rows


def add_rows(stack: Stack, sums: Any) -> Tensor:
    """(n, d) the sums with the sound rows of a round added, in float32 at least; None: no round was before.

    Rows are told apart by their place. What rounding takes beyond the range of the dtype stays on its edge.
    """
    before = read_sums(stack, sums)
    after, at = before if sums is None else before.clone(), list(stack.kept)
    for columns, rows in zip(_columns(stack.leaves), stack.leaves, strict=True):
        for k, row in zip(at, rows, strict=True):
            after[k, columns] += row
    limit = torch.finfo(after.dtype).max
    return after.clamp_(-limit, limit)


def read_sums(stack: Stack, sums: Any) -> Tensor:
    """(n, d) what was handed on, looked at; zeros where nothing was."""
    d = sum(len(rows[0]) for rows in stack.leaves)
    if sums is None:
        kinds = {rows[0].dtype for rows in stack.leaves}
        dtype = torch.float64 if torch.float64 in kinds else torch.float32
        return torch.zeros(stack.n, d, dtype=dtype, device=stack.device)
    if not isinstance(sums, Tensor) or sums.shape != (stack.n, d):
        got = tuple(sums.shape) if isinstance(sums, Tensor) else type(sums).__name__
        raise ValueError(f"the state must be the sums of {stack.n} rows, a tensor {(stack.n, d)}, got {got}")
    if not sums.is_floating_point():
        raise ValueError(f"the state must be the sums of {stack.n} rows, in floating point, got {sums.dtype}")
    return sums.detach()


class Followed(Passes):
    """Passes over the rows of a round that know the sums of the same rows, this round's among them.

    Args:
        sums: (n, d) of the rounds before, for the rows that are kept.
        unit: what a length of 1 is in these leaves.
    """

    def __init__(self, leaves: Sequence[Rows], anchors: dict[str, Any], *, sums: Tensor, **options: Any) -> None:
        super().__init__(leaves, anchors, **options)
        # In place: a copy of the sums in float64 is large enough.
        parts = [sums[:, columns].to(torch.float64, copy=True).mul_(self.unit) for columns in _columns(leaves)]
        most = torch.full((), torch.finfo(torch.float64).tiny, dtype=torch.float64, device=sums.device)
        for part, rows in zip(parts, leaves, strict=True):
            for own, row in zip(part, rows, strict=True):
                own += row
            if part.numel():
                most = most.maximum(torch.linalg.vector_norm(part, torch.inf))
        # Only the angles between them count: none may be beyond what float64 squares.
        self.past = Passes([part.div_(most) for part in parts], dict.fromkeys(anchors), **options)

    def push(self, matrix: Tensor, *, shares_rows: bool = False, anchored: bool = False) -> None:
        super().push(matrix, shares_rows=shares_rows, anchored=anchored)
        self.past.push(matrix, shares_rows=shares_rows, anchored=anchored)


def recall(passes: Passes) -> Passes:
    """The passes over what the rows have added up to; where no round was before, over the rows themselves."""
    return passes.past if isinstance(passes, Followed) else passes


def _columns(leaves: Sequence[Rows]) -> list[slice]:
    """Where each leaf lies in a row of the sums."""
    ends = [0]
    for rows in leaves:
        ends.append(ends[-1] + len(rows[0]))
    return [slice(lo, hi) for lo, hi in pairwise(ends)]
