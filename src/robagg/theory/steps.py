"""TQ step by step (Theorem 3): tau, the contraction, the printed bounds and the one that holds.

D is the distance of the iterate to the honest mean, Var the honest rows' mean squared distance to it.
"""

from __future__ import annotations

import math

from robagg._core.checks import check_positive
from robagg.theory.numbers import check_at_least_zero, check_counts, check_delta


def tau(n: int, f: int, distance: float, variance: float) -> float:
    """The radius: tau^2 = (n-f)/f (D^2 + Var); infinite for f = 0.

    The true tau takes D and Var from the honest rows; the estimate takes |v - m| and V from the median and the MAD.

    Args:
        n: rows.
        f: how many of them are Byzantine.
        distance: D of the iterate (or its distance to the median).
        variance: Var (or V).

    Example:
        >>> tau(20, 2, distance=0.0, variance=1.0)
        3.0
    """
    check_counts(n, f)
    check_at_least_zero(distance=distance, variance=variance)
    return math.inf if f == 0 else math.sqrt((n - f) / f * (distance**2 + variance))


def contraction(delta: float) -> float:
    """a = delta + sqrt(delta (1-delta)): what is left of D after a step, by the paper; below one for delta < 1/2.

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> contraction(0.2)
        0.6000000000000001
    """
    delta = check_delta(delta)
    return delta + math.sqrt(delta * (1 - delta))


def step_bound_printed(delta: float, distance: float, variance: float) -> float:
    """The one-step bound as printed, D' <= a D + sqrt(delta (1-delta) Var). It does not hold: see `step_bound`.

    It leaves out the honest rows that tau cuts.

    Args:
        delta: share of Byzantine rows.
        distance: D before the step.
        variance: Var.

    Example:
        >>> step_bound_printed(0.2, distance=0.0, variance=1.0)
        0.4
    """
    delta = check_delta(delta)
    check_at_least_zero(distance=distance, variance=variance)
    return contraction(delta) * distance + math.sqrt(delta * (1 - delta) * variance)


def step_bound(delta: float, distance: float, variance: float) -> float:
    """The one-step bound that holds: D' <= delta D + 2 sqrt(delta (1-delta) (D^2 + Var)), with the true tau.

    One root is the most that Byzantine rows inside tau can pull, the other the most that is lost with honest rows
    outside it.

    Args:
        delta: share of Byzantine rows.
        distance: D before the step.
        variance: Var.

    Example:
        >>> step_bound(0.2, distance=0.0, variance=1.0)
        0.8
    """
    delta = check_delta(delta)
    check_at_least_zero(distance=distance, variance=variance)
    return delta * distance + 2 * math.sqrt(delta * (1 - delta) * (distance**2 + variance))


def bound_after(k: int, delta: float, distance: float, variance: float) -> float:
    """The k-step bound as printed, D_k <= a^k D_0 + sqrt(delta (1-delta) Var)/(1-a).

    It is the printed one-step bound summed up, and stands on it.

    Args:
        k: steps.
        delta: share of Byzantine rows.
        distance: D_0.
        variance: Var.

    Example:
        >>> round(bound_after(10, 0.2, distance=5.0, variance=1.0), 4)
        1.0302
    """
    delta = check_delta(delta)
    check_at_least_zero(k=k, distance=distance, variance=variance)
    a = contraction(delta)
    return a**k * distance + math.sqrt(delta * (1 - delta) * variance) / (1 - a)


def steps_needed(delta: float, distance: float, variance: float) -> int:
    """k = log_a( sqrt(delta (1-delta) Var) / ((1-a) D_0) ), rounded up: when the kappa inequality is promised.

    From there both terms of `bound_after` are alike, and their squared sum is `kappa_tq` times Var.

    Args:
        delta: share of Byzantine rows.
        distance: D_0.
        variance: Var, above 0.

    Example:
        >>> steps_needed(0.45, distance=100.0, variance=1.0)
        44
        >>> steps_needed(0.2, distance=0.5, variance=1.0)
        0
    """
    delta = check_delta(delta)
    check_at_least_zero(distance=distance)
    check_positive(variance=variance)
    if delta == 0 or distance == 0:  # without Byzantine rows one step is the mean
        return int(delta == 0)
    a = contraction(delta)
    rest = math.sqrt(delta * (1 - delta) * variance) / (1 - a)
    return max(0, math.ceil(math.log(rest / distance) / math.log(a)))


def kappa_in_the_limit(delta: float) -> float:
    """What `step_bound` proves, from any start and with the true tau: 4 delta/(1 - 5 delta); infinite from 1/5 on.

    The fixed point of `step_bound`: D (1-delta) = 2 sqrt(delta (1-delta) (D^2 + Var)). For delta <= 4/29 it is no
    larger than `kappa_tq`, so there the paper's inequality is proved after enough steps.

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> round(kappa_in_the_limit(0.1), 3), kappa_in_the_limit(0.3)
        (0.8, inf)
    """
    delta = check_delta(delta)
    return 4 * delta / (1 - 5 * delta) if delta < 0.2 else math.inf
