"""A server app that is killed and started again goes on: rounds, model, FedAdam's moments, CC's last value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAdam, FedAvgM, FedYogi

from flower.federation import Grid, answer, draw_model, draw_update, fill, flatten, pack, unpack
from robagg.flower import RobustStrategy
from robagg.server import read_journal, verify_journal

MODEL = draw_model() | {"n": np.array([4], np.int64), "half": np.ones(3, np.float16)}
ROUNDS = 5


class Killed(BaseException):
    """The end of a process, as far as a test can have it."""


class Nodes(Grid):
    """Nodes that train in this process, and a server that is killed while it waits for them."""

    def __init__(self, killed_in: int = 0) -> None:
        super().__init__(7)
        self.killed_in = killed_in
        self.round = 0

    def send_and_receive(self, messages: Any, *, timeout: float) -> list[Message]:
        messages = sorted(messages, key=lambda message: message.metadata.dst_node_id)
        contents = []
        for i, message in enumerate(messages):
            message.metadata.__dict__["_message_id"] = f"m{i}"
            model = unpack(message.content["arrays"])
            number = int(message.content["config"]["server-round"])
            moved = draw_update({k: w for k, w in model.items() if k != "n"}, 10 * number + i)
            contents.append(fill(moved | {"n": model["n"] + 1}))
        if messages and number == self.killed_in:
            raise Killed
        return answer(messages, contents)


def train(nodes: Nodes, rule: str, around: Any, **files: Any) -> Any:
    seen: list[int] = []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        seen.append(server_round)
        return MetricRecord({"sum": float(flatten(unpack(arrays)).sum())})

    strategy = RobustStrategy(rule, f=2, around=around(fraction_evaluate=0.0), **files)
    result = strategy.start(nodes, pack(MODEL), ROUNDS, evaluate_fn=evaluate)  # type: ignore[arg-type]
    return result, seen


@pytest.mark.parametrize("rule", ["tq", "cc(tau=0.3)"])
@pytest.mark.parametrize("around", [FedAdam, FedYogi, FedAvgM])
@pytest.mark.parametrize("killed_in", [1, 3])
def test_the_model_is_that_of_a_run_that_was_not_killed(tmp_path: Path, rule: str, around: Any, killed_in: int) -> None:
    if around is FedAvgM:
        around = lambda **options: FedAvgM(server_momentum=0.9, **options)  # noqa: E731
    whole, _ = train(Nodes(), rule, around)
    files = {"log_file": tmp_path / "rounds.jsonl", "state_file": tmp_path / "state.pt"}
    with pytest.raises(Killed):
        train(Nodes(killed_in), rule, around, **files)
    result, seen = train(Nodes(), rule, around, **files)
    for name, array in unpack(whole.arrays).items():
        assert np.array_equal(unpack(result.arrays)[name], array), name
    assert seen == list(range(killed_in - 1, ROUNDS + 1))
    assert list(result.train_metrics_clientapp) == list(range(killed_in, ROUNDS + 1))
    assert result.evaluate_metrics_serverapp[ROUNDS] == whole.evaluate_metrics_serverapp[ROUNDS]
    journal = read_journal(tmp_path / "rounds.jsonl")
    assert [report.round for report in journal.rounds] == list(range(1, ROUNDS + 1))
    assert len({report.run for report in journal.rounds[killed_in - 1 :]}) == 1
    assert verify_journal(tmp_path / "rounds.jsonl") == []
    done, _ = train(Nodes(), rule, around, **files)  # once more: nothing is left to do
    assert np.array_equal(flatten(unpack(done.arrays)), flatten(unpack(whole.arrays)))


def test_a_second_run_of_the_same_strategy_begins_from_the_start(tmp_path: Path) -> None:
    strategy = RobustStrategy("cc(tau=0.3)", f=2, fraction_evaluate=0.0, state_file=tmp_path / "state.pt")
    first, second = (strategy.start(Nodes(), pack(MODEL), 3) for _ in range(2))  # type: ignore[arg-type]
    assert np.array_equal(flatten(unpack(first.arrays)), flatten(unpack(second.arrays)))
    assert list(second.train_metrics_clientapp) == [1, 2, 3]


def test_a_state_of_another_model_is_told_and_not_trained_on(tmp_path: Path) -> None:
    files = {"log_file": tmp_path / "rounds.jsonl", "state_file": tmp_path / "state.pt"}
    with pytest.raises(Killed):
        train(Nodes(2), "tq", FedAdam, **files)
    before = (tmp_path / "state.pt").read_bytes()
    for change, words in (
        ({"half": np.ones(4, np.float16)}, r"got 'half' as of shape \(3,\) where it is of shape \(4,\)"),
        ({"new": np.ones(4, np.float32)}, r"got 'new' as not there where it is of shape \(4,\)"),
    ):
        strategy = RobustStrategy("tq", f=2, around=FedAdam(), **files)
        with pytest.raises(ValueError, match=words):
            strategy.start(Nodes(), pack(MODEL | change), ROUNDS)  # type: ignore[arg-type]
    assert (tmp_path / "state.pt").read_bytes() == before


def test_what_a_run_cannot_begin_with_is_a_sentence() -> None:
    with pytest.raises(TypeError, match="initial_arrays must be an ArrayRecord, got dict"):
        RobustStrategy("tq", f=2).start(Nodes(), MODEL)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="num_rounds must be a whole number, got '3'"):
        RobustStrategy("tq", f=2).start(Nodes(), pack(MODEL), "3")  # type: ignore[arg-type]


def test_a_full_journal_goes_on_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    train(Nodes(), "tq", FedAdam, log_file=path, max_bytes=1)
    assert len(list(tmp_path.glob("rounds*.jsonl"))) == ROUNDS
    assert [report.round for report in read_journal(path).rounds] == list(range(1, ROUNDS + 1))
    assert verify_journal(path) == []
