"""Integer arrays, such as BatchNorm's counters: plain averaging makes floating numbers of them, clients do not."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import ArrayRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM

from flower.federation import draw_model, draw_update, fill, pack, run_round, unpack, watch
from robagg.flower import RobustStrategy

N = 5


class Net(torch.nn.Sequential):
    """A BatchNorm model with an integer array of which no pattern knows."""

    positions: torch.Tensor

    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        self.register_buffer("positions", torch.arange(4))


def train(arrays: ArrayRecord, seed: int) -> RecordDict:
    """A torch client's reply: it loads the model, takes a step, and sends its state dict."""
    net = Net()
    net.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in unpack(arrays).items()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(seed))
    (net(x) - x[:, :3]).square().mean().backward()
    optimizer.step()
    return fill(ArrayRecord(net.state_dict()))


def run(strategy: FedAvg, arrays: ArrayRecord, rounds: int) -> ArrayRecord:
    for server_round in range(1, rounds + 1):
        arrays, _ = run_round(strategy, arrays, [train(arrays, i) for i in range(N)], server_round)
        assert arrays is not None
    return arrays


@pytest.mark.parametrize("around", [None, FedAdam, FedAvgM])
def test_looking_on_rejects_no_honest_torch_client(around: Any) -> None:
    strategy = RobustStrategy("nnm >> cm", f=0.2, observe=True, around=around and around())
    reports = watch(strategy)
    start = ArrayRecord(Net().state_dict())
    arrays = run(strategy, start, 3)
    assert [len(report.rejected) for report in reports] == [0, 0, 0]
    assert {name: array.dtype for name, array in arrays.items()} == {name: array.dtype for name, array in start.items()}
    if around is None:
        assert unpack(arrays)["1.num_batches_tracked"] == 3


@pytest.mark.parametrize("observe", [False, True])
def test_a_model_that_fedavg_left_can_be_gone_on_with(observe: bool) -> None:
    checkpoint = run(FedAvg(), ArrayRecord(Net().state_dict()), 2)
    assert unpack(checkpoint)["1.num_batches_tracked"].dtype == np.float64
    strategy = RobustStrategy("nnm >> cm", f=0.2, observe=observe)
    reports = watch(strategy)
    arrays = run(strategy, checkpoint, 2)
    assert [len(report.rejected) for report in reports] == [0, 0]
    assert unpack(arrays)["1.num_batches_tracked"] == 4
    assert np.allclose(unpack(arrays)["positions"], np.arange(4))


def test_narrower_integers_are_believed_and_wider_ones_are_not() -> None:
    model = draw_model() | {"n": np.array([4], np.int32)}
    kinds = [np.int32, np.int16, bool, np.int64, np.float32]
    rows = [draw_update(draw_model(), i) | {"n": np.array([1], kind)} for i, kind in enumerate(kinds)]
    strategy = RobustStrategy("cm", f=2)
    reports = watch(strategy)
    arrays, _ = run_round(strategy, pack(model), [fill(row) for row in rows])
    assert unpack(arrays)["n"].dtype == np.int32
    assert [client.reason for client in reports[0].rejected] == [
        "'n' holds int64 where int32 is expected",
        "'n' holds float32 where int32 is expected",
    ]


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (np.ones(7, complex), "'layer.bias' must be real numbers of shape (7,), got complex128"),
        (np.eye(7), "'layer.bias' must be real numbers of shape (7,), got float64 of shape (7, 7)"),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_looking_on_keeps_a_model_of_which_an_average_would_make_another(
    hostile: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("flwr").propagate = True
    rows: list[Any] = [draw_update(draw_model(), i) for i in range(N)]
    rows[0] = rows[0] | {"layer.bias": hostile}
    strategy = RobustStrategy("cm", f=2, observe=True)
    arrays, metrics = run_round(strategy, pack(draw_model()), [fill(row) for row in rows])
    assert arrays is None and why in caplog.text
    assert metrics["robagg-rejected"] == 1


@pytest.mark.parametrize("sent", [[np.nan], [1e30], [2**63 - 1]])
def test_looking_on_keeps_whole_numbers_that_an_average_does_not_hold(sent: Any) -> None:
    model = draw_model() | {"n": np.array([4])}
    rows: list[Any] = [draw_update(draw_model(), i) | {"n": np.array(sent)} for i in range(N)]
    arrays, _ = run_round(RobustStrategy("cm", f=2, observe=True), pack(model), [fill(row) for row in rows])
    assert unpack(arrays)["n"].tolist() == [4] and unpack(arrays)["n"].dtype == np.int64
    wanted, _ = run_round(FedAvg(), pack(model), [fill(row) for row in rows])
    assert np.allclose(unpack(arrays)["layer.weight"], unpack(wanted)["layer.weight"])


def test_looking_on_keeps_the_order_in_memory() -> None:
    model = draw_model() | {"square": np.asfortranarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))}
    rows = [{name: value + np.float32(1) for name, value in model.items()} for _ in range(N)]
    arrays, _ = run_round(RobustStrategy("cm", observe=True), pack(model), [fill(row) for row in rows])
    assert np.array_equal(unpack(arrays)["square"], model["square"] + 1)
