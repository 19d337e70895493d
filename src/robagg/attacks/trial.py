"""What a rule makes of many stacks that differ in their Byzantine rows alone: on distances where it needs no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from robagg._core.aggregate import Request, aggregate
from robagg._core.passes import Passes
from robagg._core.rule import GramRule, Rule
from robagg._core.sketch import ROUNDING, Sketch
from robagg._core.stack import read
from robagg._core.stage import find_in_force
from robagg.attacks.base import View


@dataclass(frozen=True)
class Span:
    """Vectors that Byzantine rows are made of: a row is the honest mean and a sum of these, with coefficients (E,)."""

    vectors: Tensor
    """(E, d): the honest rows minus their mean (h, d), the mean itself, and others."""
    gram: Tensor
    """(E, E) float64, their inner products."""
    h: int

    @classmethod
    def of(cls, view: View, *others: Tensor) -> Span:
        """The span of a round, with other vectors (d,) behind the mean."""
        away = view.away
        vectors = torch.cat([away, view.mean.to(away.dtype)[None], *(other.to(away.dtype)[None] for other in others)])
        gram = (vectors @ vectors.T).double()
        return cls(vectors, gram, len(away))

    def form(self, mean: Tensor, coefficients: Tensor) -> Tensor:
        """(k, E) -> (k, d) rows, in the kind of the mean."""
        rows = coefficients.to(self.vectors.dtype) @ self.vectors
        return (rows + mean).to(mean.dtype)


def try_rows(view: View, rule: Rule, span: Span, tries: Tensor) -> tuple[Tensor, Tensor]:
    """How far (K,) the rule's value is from the honest mean, squared, and its inner products (K, E) with the span.

    Args:
        view: the round.
        rule: what the rows will meet.
        span: what they are made of.
        tries: (K, f, E) coefficients of K times f Byzantine rows.

    A rule that decides by distances alone costs n x n work for each try; any other is called on the rows.
    """
    return _try_by_distances(rule, span, tries) if needs_distances_only(rule) else _try_on_rows(view, rule, span, tries)


def needs_distances_only(rule: Rule) -> bool:
    """Whether the inner products of the rows decide what the rule does with them."""
    core = rule.core
    return (
        isinstance(core, GramRule)
        and type(core).solve is GramRule.solve
        and not core.needs_median
        and not core.scaled
        and all(mixer.needs_distances for mixer in rule.mixers)
        and all(name == "origin" for stage in rule.stages for name in stage.anchors)
    )


def weigh(rule: Rule, gram: Tensor, n: int) -> Tensor:
    """(n+a,) coefficients that the rule gives n rows and its anchors, from their inner products (n+a, n+a) alone."""
    anchors = tuple(dict.fromkeys(name for stage in rule.stages for name in stage.anchors))
    tolerances = find_in_force(rule, n)
    passes = Passes.of(Sketch(gram, torch.zeros_like(gram[0, 0]), n, tolerances[0], anchors, ROUNDING[torch.float32]))
    for mixer, f in zip(rule.mixers, tolerances, strict=False):
        passes.push(mixer.matrix(passes.distances(f)))
    core = rule.core
    assert isinstance(core, GramRule)
    return passes.through(core.weights(passes.distances(tolerances[-1])).coefficients.double())


def _try_by_distances(rule: Rule, span: Span, tries: Tensor) -> tuple[Tensor, Tensor]:
    h, size = span.h, len(span.gram)
    eye = torch.eye(size, dtype=torch.float64, device=tries.device)
    points = [eye[:h].expand(len(tries), -1, -1), tries]
    if any(stage.anchors for stage in rule.stages):  # the origin is the mean minus the mean
        points.append(-eye[h : h + 1].expand(len(tries), -1, -1))
    stacks = torch.cat(points, dim=1)
    n = h + tries.shape[1]
    grams = stacks @ span.gram @ stacks.mT
    many = map_over if isinstance(rule.core, GramRule) and rule.core.maps_well else do_in_turn
    weights = many(lambda gram: weigh(rule, gram, n), grams)
    moved = (weights[:, None] @ stacks)[:, 0]
    product = moved @ span.gram
    return (product * moved).sum(1), product + span.gram[h]


def map_over(function: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
    """The function of each item, for all at once where it is made of operations that torch can map, else in turn."""
    try:
        return torch.vmap(function)(batch)
    except Exception:  # what is wrong with the rule itself is raised again in turn
        return do_in_turn(function, batch)


def do_in_turn(function: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
    return torch.stack([function(item) for item in batch])


def _try_on_rows(view: View, rule: Rule, span: Span, tries: Tensor) -> tuple[Tensor, Tensor]:
    mean = view.mean
    far, along = [], []
    # An alarm that is collected is never asked for; a try that raises it may come out as NaN, and is not sent then.
    request = Request(None, view.last, view.generator, alarm=torch.zeros((), dtype=torch.bool, device=mean.device))
    stack = torch.cat([view.honest, view.honest.new_empty(tries.shape[1], view.honest.shape[1])])
    for coefficients in tries:
        stack[span.h :] = span.form(mean, coefficients)
        _, outcome = aggregate(rule, read(stack), request)
        value = outcome.values[0].double()
        far.append((value - mean).square().sum())
        along.append((span.vectors @ value.to(span.vectors.dtype)).double())
    return torch.stack(far), torch.stack(along)
