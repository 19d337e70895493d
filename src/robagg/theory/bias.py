"""Huber's bias (Theorem 2, Example 1): Byzantine rows beyond tau still pull.

s is the length of the mean of the Byzantine rows' unit directions, seen from where Huber rests: one when they stand
together.
"""

from __future__ import annotations

import math

from robagg._core.checks import check_positive
from robagg.theory.numbers import check_at_least_zero, check_delta, check_share


def huber_bias(delta: float, s: float, variance: float = 1.0) -> float:
    """Squared distance of Huber's fixed point to the honest mean: delta s^2 / (1 - (1 + s^2) delta) Var.

    For the true tau, all honest rows inside it and all Byzantine ones outside; `bias_condition` says when the former
    is sure.

    Args:
        delta: share of Byzantine rows.
        s: how alike the Byzantine rows' directions are, 0 to 1.
        variance: Var of the honest rows.

    Example:
        >>> huber_bias(0.1, s=1.0)
        0.125
    """
    delta = check_delta(delta)
    check_share(s=s)
    check_at_least_zero(variance=variance)
    return delta * s**2 / (1 - (1 + s**2) * delta) * variance


def bias_condition(s: float, farthest: float, variance: float, *, printed: bool = False) -> float:
    """The largest delta for which all honest rows are sure to lie within tau of Huber's fixed point.

        delta <= [2(1+s) + k - sqrt(4k(s - s^2) + k^2)] / [2((1+s)^2 + k(1+s^2))]

    k is G^2/Var: with D^2 the bias and tau = D (1-delta)/(delta s), the condition D + G <= tau reads
    k delta (1 - (1+s^2) delta) <= (1 - (1+s) delta)^2, whose smaller root this is. The paper prints k = G/sqrt(Var),
    which is smaller, so its condition lets too much pass.

    Args:
        s: how alike the Byzantine rows' directions are, 0 to 1.
        farthest: G, the largest distance of an honest row to the honest mean.
        variance: Var of the honest rows, above 0.
        printed: take k = G/sqrt(Var) as in print.

    Example:
        >>> bias_condition(1.0, farthest=3.0, variance=1.0)
        0.09090909090909091
        >>> bias_condition(1.0, farthest=3.0, variance=1.0, printed=True)
        0.2
    """
    check_share(s=s)
    check_positive(farthest=farthest, variance=variance)
    if farthest**2 < variance * (1 - 1e-9):
        raise ValueError(f"farthest must be at least the root of variance, got {farthest} and {variance}")
    k = farthest / math.sqrt(variance) if printed else farthest**2 / variance
    root = math.sqrt(4 * k * (s - s**2) + k**2)
    return (2 * (1 + s) + k - root) / (2 * ((1 + s) ** 2 + k * (1 + s**2)))


def huber_move(delta: float, tau: float, s: float) -> float:
    """How far one step of Huber goes from the honest mean (Example 1): delta tau s. TQ stays.

    Byzantine rows are outside tau.

    Args:
        delta: share of Byzantine rows.
        tau: the radius, with all honest rows inside it.
        s: how alike the Byzantine rows' directions are, 0 to 1.

    Example:
        >>> huber_move(0.25, tau=2.0, s=1.0)
        0.5
    """
    delta = check_delta(delta)
    check_at_least_zero(tau=tau)
    check_share(s=s)
    return delta * tau * s
