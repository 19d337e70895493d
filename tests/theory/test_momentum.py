"""What docs/theory.md says of momentum: when small reversed gradients make the swings of the weights grow."""

from __future__ import annotations

import pytest


def swing(mu: float, rate: float, reversed_part: float, curvature: float, rounds: int = 4000) -> float:
    """The largest weight in the last quarter of the rounds, over that in the second, in one direction from w = 1."""
    w, v, honest, far = 1.0, 0.0, 0.7, []
    for _ in range(rounds):
        gradient = curvature * w
        v = mu * v + (1 - mu) * gradient
        w -= rate * (honest * v - reversed_part * gradient)
        far.append(abs(w))
    quarter = rounds // 4
    return max(far[-quarter:]) / max(far[quarter : 2 * quarter])


@pytest.mark.parametrize("mu", [0.9, 0.99])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_swings_grow_just_where_the_reversed_part_is_beyond_the_limit(mu: float, rate: float) -> None:
    curvature = 1.0 / rate
    limit = (1 - mu) / mu / (rate * curvature)
    assert swing(mu, rate, 0.98 * limit, curvature) < 1 < swing(mu, rate, 1.02 * limit, curvature)
