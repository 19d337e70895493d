"""The passes over the stack (`sketch`, `trim`, `combine`, `shares`, `measure`), each on the fastest path for its rows.

`reference` (plain torch) defines what they compute and runs everywhere; `cpu` is the compiled library, built with the
package; `cuda` is written in Triton. `active()` says which path runs; ROBAGG_KERNEL=reference in the environment runs
the reference everywhere.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from robagg.kernels import cpu, cpu_filter, cpu_many, cuda, cuda_filter, many, reference
from robagg.kernels.types import Examined, Rows, Sketched, Walked

_warned = False


def sketch(
    rows: Rows,
    *,
    mix: Tensor | None = None,
    anchors: Sequence[Tensor | None] = (),
    votes: Tensor | None = None,
    compute: torch.dtype,
    spare: Tensor | None = None,
    floor: Tensor | None = None,
) -> Sketched:
    """Median, spread and Gram matrix in one pass; see `reference.sketch`. The median may take the place of `spare`."""
    module, more = _offer(rows[0], spare, votes, floor)
    result: Sketched = module.sketch(rows, mix=mix, anchors=anchors, compute=compute, **more)
    return result


def trim(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo..hi-1; see `reference.trim`."""
    module, more = _offer(rows[0], None, votes)
    result: tuple[Tensor, Tensor] = module.trim(rows, lo, hi, mix=mix, compute=compute, **more)
    return result


def combine(
    rows: Rows,
    coefficients: Tensor,
    *,
    beside: Sequence[Tensor] = (),
    compute: torch.dtype,
    spare: Tensor | None = None,
    alarm: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted sum of rows and of vectors beside them; see `reference.combine`.

    It may take the place of `spare`, even if that is one of them, and its alarm that of `alarm`, an earlier one.
    """
    module, more = _offer(rows[0], spare, None)
    result: tuple[Tensor, Tensor] = module.combine(
        rows, coefficients, beside=beside, compute=compute, alarm=alarm, **more
    )
    return result


def shares(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
) -> Tensor:
    """How many coordinates each row has within the sorted values lo..hi-1; see `reference.shares`."""
    pass_ = cpu.shares if choose(rows[0]) is cpu else reference.shares
    return pass_(rows, lo, hi, mix=mix, votes=votes, compute=compute)


def measure(rows: Rows, point: Tensor | None) -> Tensor:
    """The squared distances of the rows to a point, in float64; see `reference.measure`."""
    return cpu.measure(rows, point) if choose(rows[0]) is cpu else reference.measure(rows, point)


def choose_many(row: Tensor) -> ModuleType:
    """The module with what passes over many rows like this one are made of: functions as those of `many`."""
    return cpu_many if choose(row) is cpu and cpu_many.available() else many


def _offer(
    row: Tensor, spare: Tensor | None, votes: Tensor | None, floor: Tensor | None = None
) -> tuple[ModuleType, dict[str, Tensor]]:
    """The module for rows like this one, and what it can use of the rest.

    Spare memory is for the CPU, where fresh memory costs time. Votes and a floor on a GPU are for the reference: the
    Triton kernels know none.
    """
    module = choose(row)
    if votes is not None or floor is not None:
        module = reference if module is cuda else module
    given = {"spare": spare if module is cpu else None, "votes": votes, "floor": floor}
    return module, {name: value for name, value in given.items() if value is not None}


def choose(row: Tensor) -> ModuleType:
    """The module whose passes run for rows like this one."""
    global _warned
    if _only_reference():
        return reference
    if row.device.type == "cpu":
        if cpu.available():
            return cpu
        if not _warned:
            _warned = True
            warnings.warn(
                "robagg runs without its compiled library (no C compiler when it was installed?): "
                "results are the same, aggregation is slower",
                RuntimeWarning,
                stacklevel=2,
            )
    elif row.is_cuda and cuda.available():
        return cuda
    return reference


def walk(
    formula: str,
    gram: Tensor,
    spread: Tensor,
    n: int,
    f: float,
    iterations: int,
    *,
    votes: Tensor | None = None,
    **more: Any,
) -> Walked | None:
    """The n x n loop of a formula in one kernel, where there is one (None: do it step by step); see `cuda.walk`."""
    if formula not in cuda.FORMULAS or _only_reference() or _is_mapped(gram):
        return None
    if gram.is_cuda and votes is None and len(gram) <= cuda.MOST and cuda.available():
        return cuda.walk(formula, gram, spread, n, int(f), iterations, **more)
    if type(gram) is Tensor and gram.device.type == "cpu" and cpu.available() and n <= cpu_many.MOST:
        return cpu.walk(formula, gram, spread, n, f, iterations, votes=votes, **more)
    return None


def weigh_down(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor | None:
    """The loop of a filter in one kernel, where there is one (None: step by step); see `_core.filtering.weigh_down`.

    The first rows of `gram` count, as many as there are votes.
    """
    mapped = _is_mapped(gram)
    if _only_reference() or (mapped and not _is_stack(gram)):
        return None
    if gram.is_cuda and not mapped and len(votes) <= cuda.MOST and cuda.available():
        return cuda_filter.weigh_down(gram, votes, f, level, steps)
    if gram.device.type == "cpu" and len(votes) <= cpu_filter.MOST and cpu_filter.available():
        return (cpu_filter.weigh_down_each if mapped else cpu_filter.weigh_down)(gram, votes, f, level, steps)
    return None


def neighbours(gram: Tensor, n: int, count: int) -> tuple[Tensor, Tensor] | None:
    """Each row's nearest rows in one kernel, where there is one (None: sort them); see `cuda.neighbours`."""
    if gram.is_cuda and n <= 2 * cuda.MOST and cuda.available() and not (_only_reference() or _is_mapped(gram)):
        return cuda.neighbours(gram, n, count)
    return None


def sum_nearest(gram: Tensor, n: int, count: int) -> Tensor | None:
    """Each row's sum of squared distances to its nearest rows, where there is a kernel; see `cpu_many.sum_nearest`."""
    return cpu_many.sum_nearest(gram, n, count) if n > cpu_many.MOST and _knows_many(gram) else None


def mix_gram(mix: Tensor, gram: Tensor) -> Tensor:
    """W G W^T for a matrix (m, n) and a symmetric one (n, n)."""
    return cpu_many.mix_gram(mix, gram) if len(gram) > cpu_many.MOST and _knows_many(gram) else mix @ gram @ mix.T


def _knows_many(gram: Tensor) -> bool:
    return gram.device.type == "cpu" and cpu_many.available() and not (_only_reference() or _is_mapped(gram))


def nearest_means(gram: Tensor, n: int, count: int) -> Tensor | None:
    """The matrix of each row's nearest rows in one kernel, where there is one; see `cuda.nearest_means`."""
    if gram.is_cuda and len(gram) <= 2 * cuda.MOST and cuda.available() and not (_only_reference() or _is_mapped(gram)):
        return cuda.nearest_means(gram, n, count)
    if n > cpu_many.MOST and _knows_many(gram):
        return cpu_many.nearest_means(gram, n, count)
    return None


def examine(gram: Tensor, spread: Tensor, **more: Any) -> Examined:
    """Whether a sketch can be computed with, its spread and its blur; see `reference.examine`.

    An alarm that is given may be set in its place.
    """
    if gram.is_cuda and cuda.available() and not _only_reference():
        return cuda.examine(gram, spread, **more)
    return reference.examine(gram, spread, **more)


def active(device: str | torch.device = "cpu") -> str:
    """Which path runs on a device: "c (avx512)", "triton", "torch".

    >>> active("cpu") in ("c (avx512)", "c (avx2)", "c (plain)", "torch")
    True
    """
    if _only_reference():
        return "torch"
    if torch.device(device).type == "cpu" and cpu.available():
        return f"c ({cpu.isa()})"
    if torch.device(device).type == "cuda" and cuda.available():
        return "triton"
    return "torch"


def _is_mapped(gram: Tensor) -> bool:
    """Whether it is a stack of matrices under vmap, which has no memory of its own to point at."""
    mapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(gram)
    return mapped


def _is_stack(gram: Tensor) -> bool:
    """Whether it is mapped once, and nothing more: neither stacks of stacks nor derivatives."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(gram) and not _is_mapped(functorch.get_unwrapped(gram))


@cache
def _only_reference() -> bool:
    """Whether the environment asks for the reference alone."""
    choice = os.environ.get("ROBAGG_KERNEL", "")
    if choice not in ("", "reference"):
        raise ValueError(f"ROBAGG_KERNEL must be 'reference' or not set, got {choice!r}")
    return choice == "reference"
