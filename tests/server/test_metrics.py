"""Metrics that clients tell: what one of them says alone neither counts nor costs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from robagg.server import metrics
from robagg.server.metrics import average_metrics

N = 20


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every number that is looked at."""
    seen: list[Any] = []
    finite = metrics._finite
    monkeypatch.setattr(metrics, "_finite", lambda value: (seen.append(value), finite(value))[1])
    return seen


@pytest.mark.parametrize(
    "flood", [{f"m{i}": 7.0 for i in range(1000)}, {"per_class": [7.0] * 1000}, {"loss": [7.0] * 1000}]
)
def test_what_one_client_alone_tells_is_not_even_looked_at(flood: Any, looked_at: list[Any]) -> None:
    records = [{"loss": 1.0, "num-examples": 10} for _ in range(N - 1)]
    result = average_metrics([flood, {}, *records], 4, leave_out="num-examples")
    assert result == {"loss": 1.0}
    assert 7.0 not in looked_at
    assert len(looked_at) <= N


@pytest.mark.parametrize("count", [1, 3, 5, 40])
def test_the_mean_of_the_largest_numbers_is_one(count: int) -> None:
    most = sys.float_info.max
    assert metrics.trim_mean([most] * count, 0, count) == pytest.approx(most)
    assert metrics.trim_mean([0.0] * count, 0, count) == 0.0


def test_numbers_that_are_looked_at_are_looked_at_once(looked_at: list[Any]) -> None:
    """Where nobody lies, what one client alone tells counts, and costs no more than it is long."""
    records = [{"a": [1.0] * 500} | {f"m{i}": 2.0 for i in range(500)}, *[{"b": 1}] * (N - 1)]
    result = average_metrics(records, 0, leave_out="num-examples")
    assert len(result) == 502
    assert len(looked_at) == 1000 + N - 1


def test_a_metric_counts_where_enough_clients_tell_it_in_the_same_form() -> None:
    forms: list[Any] = [1.0] * 6 + [[1.0, 2.0]] * 5 + [[1.0]]
    for f, counts in ((2, True), (3, False)):
        records = [{"x": form} for form in forms]
        assert average_metrics(records, f, leave_out="").get("x") == (1.0 if counts else None)
