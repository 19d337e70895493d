"""Training with a robust rule (Theorem 5): step size, momentum, what is reached and what nobody can.

L is the smoothness of the loss, sigma^2 the variance of one sample's gradient, G^2 the heterogeneity of the honest
clients' gradients, b the batch, h the honest clients, T the rounds, and `gap` is F(w_0) minus the least loss.
"""

from __future__ import annotations

import math

from robagg._core.checks import check_positive
from robagg.theory.numbers import check_at_least_zero, check_delta


def step_size(*, L: float, gap: float, sigma2: float, kappa: float, h: int, b: int, T: int) -> float:
    """lambda = min{ 1/(24 L), (1/8) sqrt( gap b h / ((3 kappa h + 1) sigma^2 L T) ) }.

    Args:
        L: smoothness.
        gap: F(w_0) - F*.
        sigma2: variance of one sample's gradient; 0 leaves 1/(24 L).
        kappa: the rule's.
        h: honest clients.
        b: batch.
        T: rounds.

    Example:
        >>> round(step_size(L=1.0, gap=2.0, sigma2=1.0, kappa=1.0, h=14, b=32, T=1500), 5)
        0.01473
    """
    _check(L=L, gap=gap, sigma2=sigma2, kappa=kappa, h=h, b=b, T=T)
    largest = 1 / (24 * L)
    return largest if sigma2 == 0 else min(largest, math.sqrt(gap * b * h / ((3 * kappa * h + 1) * sigma2 * L * T)) / 8)


def momentum(*, L: float, step: float) -> float:
    """mu = sqrt(1 - 24 L lambda).

    Args:
        L: smoothness.
        step: lambda, at most 1/(24 L).

    Example:
        >>> momentum(L=1.0, step=0.04)
        0.2000000000000...
    """
    check_positive(L=L, step=step)
    if 24 * L * step > 1 + 1e-12:
        raise ValueError(f"the step size must be at most 1/(24 L) = {1 / (24 * L):.4g}, got {step}")
    return math.sqrt(max(0.0, 1 - 24 * L * step))


def gradient_bound(*, L: float, gap: float, sigma2: float, kappa: float, G2: float, h: int, b: int, T: int) -> float:
    """The average squared gradient is at most 144 sqrt((3 kappa + 1/h) gap L sigma^2/(T b)) + 36 kappa G^2.

    Args:
        L: smoothness.
        gap: F(w_0) - F*.
        sigma2: variance of one sample's gradient.
        kappa: the rule's.
        G2: heterogeneity; its term stays however long one trains.
        h: honest clients.
        b: batch.
        T: rounds.

    Example:
        >>> round(gradient_bound(L=1.0, gap=2.0, sigma2=1.0, kappa=1.0, G2=0.1, h=14, b=32, T=1500), 3)
        5.229
    """
    _check(L=L, gap=gap, sigma2=sigma2, kappa=kappa, h=h, b=b, T=T)
    check_at_least_zero(G2=G2)
    return 144 * math.sqrt((3 * kappa + 1 / h) * gap * L * sigma2 / (T * b)) + 36 * kappa * G2


def least_gradient(delta: float, G2: float) -> float:
    """What no algorithm can go below in the worst case: delta G^2/4.

    Args:
        delta: share of Byzantine rows.
        G2: heterogeneity.

    Example:
        >>> least_gradient(0.2, G2=1.0)
        0.05
    """
    check_at_least_zero(G2=G2)
    return check_delta(delta) * G2 / 4


def _check(*, L: float, gap: float, sigma2: float, kappa: float, h: int, b: int, T: int) -> None:
    check_positive(L=L, gap=gap, h=h, b=b, T=T)
    check_at_least_zero(sigma2=sigma2, kappa=kappa)
