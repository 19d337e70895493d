"""The hostile matrix through a server of one's own: nothing a client sends moves the model far, or raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch

import robagg as ra
from robagg._core.rule import Rule
from robagg.server import Failure, Reply, RobustServer, RoundResult
from server.hostile import BROKEN, FAR, SIZE, Hostile, draw_model, draw_update, flatten

N, F = 11, 2
MODEL = draw_model()
ROWS = [draw_update(MODEL, i) for i in range(N)]
MEAN = np.mean([flatten(row) for row in ROWS], axis=0)
SPREAD = max(np.linalg.norm(flatten(row) - MEAN) for row in ROWS)
RULES: list[Rule] = [ra.TQ(f=F), ra.NNM(f=F) >> ra.CM(f=F), ra.RFA(f=F), ra.CC(f=F, tau=1.0), ra.Krum(f=F)]


class Odd(Mapping[str, Any]):
    """A mapping of somebody's own, all of whose answers are wrong."""

    def __getitem__(self, name: str) -> Any:
        raise SystemError("no")

    def __iter__(self) -> Iterator[str]:
        return iter(MODEL)

    def __len__(self) -> int:
        return 10**9


class Tricky(torch.Tensor):
    """A tensor that answers in its own way."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("ours now")


def put(value: Any) -> Hostile:
    return lambda sent, trained, metrics: ({**trained, "layer.bias": value}, metrics)


class Silent(Odd):
    """One of a plausible length, none of whose names can be had."""

    def __iter__(self) -> Iterator[str]:
        raise SystemError("no")

    def __len__(self) -> int:
        return 1


OBJECTS: dict[str, Hostile] = {
    "none": lambda s, t, m: (None, m),
    "a-list": lambda s, t, m: (list(t.values()), m),
    "text": lambda s, t, m: ("x" * 10**6, m),
    "odd-mapping": lambda s, t, m: (Odd(), m),
    "silent-mapping": lambda s, t, m: (Silent(), m),
    "silent-metrics": lambda s, t, m: (t, Silent()),  # type: ignore[return-value]
    "names-that-are-numbers": lambda s, t, m: (dict(enumerate(t.values())), m),
    "metrics-that-are-none": lambda s, t, m: (t, None),  # type: ignore[return-value]
    "sparse": put(torch.zeros(7).to_sparse()),
    "meta": put(torch.zeros(7, device="meta")),
    "one-number-seen-as-many": put(torch.zeros(1).expand(10**9)),
    "a-lazy-parameter": put(torch.nn.UninitializedParameter()),
    "complex-tensor": put(torch.zeros(7, dtype=torch.complex64)),
    "masked": put(np.ma.masked_array(np.zeros(7, np.float32), mask=True)),
    "text-for-a-size": lambda s, t, m: (t, {**m, SIZE: "1e3"}),
    "dict-for-a-size": lambda s, t, m: (t, {**m, SIZE: {}}),
}
"""What only a server in the same process can be given."""
CASES = BROKEN | OBJECTS | FAR


def serve(server: RobustServer, *hostile: Hostile) -> RoundResult:
    """One round of N replies, the first of them hostile."""
    replies: dict[str, Any] = {}
    for i, row in enumerate(ROWS):
        arrays, metrics = row, {SIZE: 10, "loss": float(i)}
        if i < len(hostile):
            arrays, metrics = hostile[i](MODEL, row, {SIZE: 10, "loss": 1e12})
        size = metrics.get(SIZE) if isinstance(metrics, dict) else None
        replies[f"site-{i}"] = Reply(arrays, size=size, metrics=metrics)
    return server.aggregate(1, replies, model=MODEL)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_one_hostile_reply_does_not_move_the_model(name: str, rule: Rule) -> None:
    result = serve(RobustServer(rule), CASES[name])
    assert not result.skipped
    assert list(result.model) == list(MODEL)
    for key, value in result.model.items():
        assert value.shape == MODEL[key].shape and value.dtype == MODEL[key].dtype
    honest = np.mean([flatten(row) for row in ROWS[1:]], axis=0)
    assert np.linalg.norm(flatten(result.model) - honest) < 1.5 * SPREAD
    assert 0 <= result.report.metrics["loss"] <= N


@pytest.mark.parametrize("name", BROKEN | OBJECTS)
def test_a_broken_reply_is_dropped_with_a_reason(name: str) -> None:
    report = serve(RobustServer(ra.CM(f=F)), CASES[name]).report
    (broken,) = report.rejected
    assert broken.client == "site-0"
    assert 3 < len(broken.reason) < 300 and broken.reason.isprintable()


def test_a_tensor_with_a_will_of_its_own_is_read_as_plain_numbers() -> None:
    tricky = torch.zeros(7).as_subclass(Tricky)
    assert not serve(RobustServer(ra.TQ(f=F)), put(tricky)).skipped


def test_all_broken_kinds_at_once_skip_the_round_and_never_raise() -> None:
    kinds = list((BROKEN | OBJECTS).values())
    for i in range(0, len(kinds), N):
        result = serve(RobustServer("tq", f=0.3), *kinds[i : i + N][:N])
        assert result.model is MODEL or not result.skipped
    assert serve(RobustServer("tq", f=0.3), *kinds[:N]).skipped


def test_failures_of_all_kinds_leave_nothing_to_aggregate() -> None:
    server = RobustServer("tq", f=F)
    result = server.aggregate(1, {"a": Failure("x" * 10**6)}, model=MODEL, asked=["a", "b"])
    assert result.skipped and result.model is MODEL
