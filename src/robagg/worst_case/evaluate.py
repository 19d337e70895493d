"""A rule on many stacks at once, and TQ or Huber with what only the honest know."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from robagg._core.iterative import IterativeRule
from robagg._core.rule import GramRule, Rule
from robagg._core.sketch import ROUNDING, Sketch, leave
from robagg._core.sorted import SortedRule
from robagg.rules import TQ, Huber, Mean

Evaluate = Callable[[Tensor], Tensor]
"""Stacks (B, n, d) in float64 to values (B, d)."""


def evaluate_each(rule: Rule, seed: int) -> Evaluate:
    """The rule by its public call, stack by stack: what counts, but slow. What is random begins at `seed` each time."""

    def evaluate(x: Tensor) -> Tensor:
        return torch.stack([rule(rows, generator=torch.Generator().manual_seed(seed)) for rows in x])

    return evaluate


def evaluate_batch(rule: Rule, n: int, seed: int) -> Evaluate:
    """The same values for all stacks in one go, where the rule is one of the kinds that allow it; else one by one.

    The rule's own code runs, on sketches of all stacks at once. It is compared with the public call before it is
    trusted, so for a rule of a user's own that cannot be batched the search is slower and as right.
    """
    each = evaluate_each(rule, seed)
    if not isinstance(rule.core, GramRule | SortedRule | Mean):
        return each
    if isinstance(rule.core, GramRule) and not rule.core.maps_well:
        return each
    tolerances = [stage.resolve_f(n) for stage in rule.stages]
    ready = _draw_matrices(rule, n, seed)

    def evaluate(x: Tensor) -> Tensor:
        return _map(lambda rows: _aggregate(rule, rows, tolerances, ready), x)

    probe = torch.randn(4, n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    try:
        same = torch.allclose(evaluate(probe), each(probe), rtol=1e-9, atol=1e-12)
    except (RuntimeError, TypeError, ValueError):  # what cannot be mapped over
        same = False
    return evaluate if same else each


def walk(
    rule: IterativeRule,
    x: Tensor,
    h: int,
    *,
    start: Tensor | None = None,
    tau: str = "estimated",
    steps: int | None = None,
) -> Tensor:
    """The value (..., d) of an iterative rule on stacks (..., n, d), the first h rows honest, from a start of choice.

    With `tau="true"` TQ and Huber take tau from the honest mean and variance instead of the median and the MAD; TQ is
    then the paper's TQ_t. It needs to know who is honest, so it is no rule.

    Args:
        rule: TQ, Huber or, with its own width, another iterative rule.
        x: the stacks, honest rows first.
        h: how many rows are honest.
        start: (..., d); None is the coordinate-wise median.
        tau: "estimated" or "true".
        steps: how many; None is the rule's own number.

    Example:
        >>> x = torch.tensor([[1.0], [3.0], [2.0], [9.0]])
        >>> walk(TQ(f=1), x, 3, tau="true", steps=50)
        tensor([2.], dtype=torch.float64)
    """
    check_walk(rule, tau)
    x = x.double()
    begin = _median(x) if start is None else start.double()
    f = rule.resolve_f(x.shape[-2])
    count = rule.iterations if steps is None else steps
    if x.dim() == 2:
        return _walk(rule, x, begin, h, f, tau, count)
    return _map(lambda rows, v: _walk(rule, rows, v, h, f, tau, count), x, begin)


def check_walk(rule: Rule, tau: str) -> None:
    """Refuse what has no start to choose or no tau to know."""
    if tau not in ("estimated", "true"):
        raise ValueError(f'tau must be "estimated" or "true", got {tau!r}')
    if tau == "true" and not isinstance(rule, TQ | Huber):
        raise ValueError(f'rule must be TQ or Huber, without pre-aggregators, for tau="true", got {rule}')
    if not isinstance(rule, IterativeRule):
        raise ValueError(f'rule must be an iterative rule, without pre-aggregators, for start="far", got {rule}')


def _walk(rule: IterativeRule, x: Tensor, start: Tensor, h: int, f: int, tau: str, steps: int) -> Tensor:
    # The estimate reads |v - centre|^2 and the spread: about the honest mean, with Var for V, it is the true tau.
    if tau == "true":
        centre = x[:h].mean(dim=0)
        spread = (x[:h] - centre).square().sum() / h
    else:
        centre = _median(x)
        spread = _spread(x, centre)
    points = torch.cat([x, start[None]]) - centre
    sketch = Sketch(points @ points.T, spread, len(x), f, ("start",), ROUNDING[torch.float64])
    c = sketch.at("start")
    for _ in range(steps):
        c = rule.pull(sketch, c, sketch.squared_distances(c)).move(sketch, c)
    return centre + c @ points


def _aggregate(rule: Rule, x: Tensor, tolerances: list[int], ready: list[Tensor | None]) -> Tensor:
    """The value (d,) of the rule on rows (n, d), in plain torch that can be mapped over stacks."""
    names = tuple(dict.fromkeys(name for stage in rule.stages for name in stage.anchors))
    origin = x.new_zeros(len(names), x.shape[1])
    own, *behind = tolerances
    sent, mix = x, torch.eye(len(x), dtype=x.dtype)
    for mixer, drawn in zip(rule.mixers, ready, strict=True):
        points = torch.cat([x, origin])
        matrix = mixer.matrix(_sketch(x, origin, own, names)) if drawn is None else drawn
        mix = matrix[:, : len(x)] @ mix
        x = matrix @ points
        own, *behind = [mixer.tolerance_behind(len(x), f) for f in behind]
    core = rule.core
    if isinstance(core, SortedRule):
        lo, hi = core.kept(len(x), own)
        return x.sort(dim=0).values[lo:hi].mean(dim=0)
    if isinstance(core, GramRule):
        centre, sketch = _median(x), _sketch(x, origin, own, names)
        if core.floor and any(mixer.shares_rows for mixer in rule.mixers):
            least = leave(mix, (sent - _median(sent)).square().sum(dim=1))
            sketch = replace(sketch, spread=torch.maximum(sketch.spread, least))
        return centre + core.weights(sketch).coefficients @ (torch.cat([x, origin]) - centre)
    return x.mean(dim=0)


def _sketch(x: Tensor, origin: Tensor, f: int, names: tuple[str, ...]) -> Sketch:
    centre = _median(x)
    points = torch.cat([x, origin]) - centre
    return Sketch(points @ points.T, _spread(x, centre), len(x), f, names, ROUNDING[torch.float64])


def _draw_matrices(rule: Rule, n: int, seed: int) -> list[Tensor | None]:
    """Matrices of pre-aggregators that do not look at the rows, drawn as the public call would; None for the others."""
    generator = torch.Generator().manual_seed(seed)
    anchors = tuple(dict.fromkeys(name for stage in rule.stages for name in stage.anchors))
    matrices: list[Tensor | None] = []
    for mixer in rule.mixers:
        if mixer.needs_distances:
            matrices.append(None)
        else:
            gram = torch.zeros(n + len(anchors), n + len(anchors), dtype=torch.float64)
            bare = Sketch(gram, gram.new_zeros(()), n, 0, anchors)
            matrices.append(mixer.matrix(bare, generator=generator))
        n = mixer.count_behind(n)
    return matrices


def _map(one: Callable[..., Tensor], *stacks: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*performance drop.*")  # an operation is mapped slowly: still right
        result: Tensor = torch.vmap(one)(*stacks)
    return result


def _median(x: Tensor) -> Tensor:
    n = x.shape[-2]
    s = x.sort(dim=-2).values
    return (s[..., (n - 1) // 2, :] + s[..., n // 2, :]) / 2


def _spread(x: Tensor, centre: Tensor) -> Tensor:
    return _median((x - centre).abs()).square().sum()
