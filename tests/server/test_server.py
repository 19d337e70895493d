"""A server of one's own: names and state dicts in, the next model and a verdict by name out."""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg.report.rounds import summarise_clients
from robagg.server import Failure, Reply, RobustServer, RoundReport, read_journal, replay_round
from robagg.server.model import Model

NAMES = [f"site-{i}" for i in range(9)]
SHAPES = {"layer.weight": (7, 5), "layer.bias": (7,), "bn.running_mean": (7,)}
Arrays = dict[str, Any]


def draw_model() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    model = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    return model | {"bn.num_batches_tracked": torch.tensor(3)}


MODEL = draw_model()


def draw_update(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(100 + seed)
    moved = {name: w + 0.5 + 0.1 * torch.randn(w.shape, generator=generator) for name, w in MODEL.items()}
    return moved | {"bn.num_batches_tracked": torch.tensor(4 + seed)}


def honest(n: int = 9) -> dict[str, Any]:
    return {name: draw_update(i) for i, name in enumerate(NAMES[:n])}


def test_state_dicts_by_name_give_the_next_model_and_name_who_was_rejected() -> None:
    replies = honest() | {"site-4": {name: w + 100 * w.is_floating_point() for name, w in draw_update(4).items()}}
    result = RobustServer("tq", f=2).aggregate(1, replies, model=MODEL)
    assert [client.client for client in result.report.rejected] == ["site-4"]
    assert list(result.model) == list(MODEL)
    for name, own in MODEL.items():
        assert result.model[name].dtype == own.dtype and result.model[name].shape == own.shape
    measured = [{name: reply[name] for name in ("layer.weight", "layer.bias")} for reply in replies.values()]
    wanted = ra.TQ(f=2)(measured)
    assert all(torch.allclose(result.model[name], wanted[name]) for name in wanted)
    assert torch.equal(
        result.model["bn.running_mean"], ra.CM()([reply["bn.running_mean"] for reply in replies.values()])
    )
    assert int(result.model["bn.num_batches_tracked"]) == 8


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["tq", "rfa", "cc(tau=1.0)"])
def test_every_float_of_torch_comes_back(dtype: torch.dtype, rule: str) -> None:
    model = {"w": torch.ones(4, 3, dtype=dtype).T}
    replies = {name: {"w": model["w"] + 0.1 * i} for i, name in enumerate(NAMES)}
    new = RobustServer(rule, f=2).aggregate(1, replies, model=model).model["w"]
    assert new.dtype == dtype and new.shape == (3, 4)
    assert torch.allclose(new.float(), torch.full((3, 4), 1.4), atol=0.3)


def test_numpy_models_come_back_as_numpy() -> None:
    model = {"w": np.zeros((2, 3), np.float32), "n": np.array(3)}
    replies = {name: {"w": model["w"] + i, "n": np.array(i, np.int32)} for i, name in enumerate(NAMES)}
    new = RobustServer("cm").aggregate(1, replies, model=model).model
    assert isinstance(new["w"], np.ndarray) and new["w"].dtype == np.float32 and new["w"].tolist() == [[4.0] * 3] * 2
    assert isinstance(new["n"], np.ndarray) and new["n"].dtype == np.int64 and new["n"] == 4


def test_replies_are_not_changed_and_not_shared_with_the_next_model() -> None:
    replies = {name: {"w": torch.full((20000,), 1.0), "n": torch.tensor(1)} for name in NAMES}
    for rule in ("mean", "rfa", "cm", "tq"):
        new = RobustServer(rule).aggregate(1, replies, model={"w": torch.zeros(20000), "n": torch.tensor(0)}).model
        new["w"].fill_(7.0)
        new["n"].fill_(7)
        assert all(reply["w"].eq(1.0).all() and reply["n"] == 1 for reply in replies.values())


def test_only_those_who_were_asked_count() -> None:
    replies = honest(6) | {"stranger": {name: w + 1e6 for name, w in MODEL.items()}}
    result = RobustServer("mean").aggregate(1, replies, model=MODEL, asked=NAMES[:7])
    assert result.report.unasked == ("stranger",)
    assert result.report.asked == 7 and result.report.answered == 6
    assert [(client.client, client.reason) for client in result.report.clients if not client.replied] == [
        ("site-6", "no reply")
    ]
    assert float(result.model["layer.bias"].max()) < 10


def test_failures_lower_n_and_say_why() -> None:
    replies = honest() | {"site-0": Failure("connection refused")}
    report = RobustServer("tq", f=2).aggregate(1, replies, model=MODEL).report
    lost = next(client for client in report.clients if not client.replied)
    assert (lost.client, lost.reason, report.answered) == ("site-0", "connection refused", 8)


def test_metrics_are_trimmed_means_of_those_believed() -> None:
    replies = {name: Reply(draw_update(i), metrics={"loss": float(i), "name": "x"}) for i, name in enumerate(NAMES)}
    replies["site-8"] = Reply({name: w + 1e6 for name, w in MODEL.items()}, metrics={"loss": 1e12})
    report = RobustServer("cm", f=2).aggregate(1, replies, model=MODEL).report
    assert report.metrics == {"loss": 3.5}


def test_sizes_weigh_within_max_weight() -> None:
    model = {"w": torch.zeros(3)}
    replies = {name: Reply({"w": torch.full((3,), float(i))}, size=1 + 9 * (i == 8)) for i, name in enumerate(NAMES)}
    new = RobustServer("mean", weighted=True, max_weight=0.5).aggregate(1, replies, model=model).model["w"]
    assert torch.allclose(new, torch.full((3,), 0.5 * 8 + 0.5 * 3.5))
    replies["site-0"] = Reply({"w": torch.zeros(3)})
    report = RobustServer("mean", weighted=True).aggregate(1, replies, model=model).report
    assert [client.reason for client in report.rejected] == ["does not say its size"]


def test_f_that_comes_to_nothing_skips_the_round_and_warns_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """Two replies bear no f but 0; a share of them is 0 all the same."""
    server = RobustServer("tq", f=0.2)
    for number in (1, 2):
        result = server.aggregate(number, honest(2), model=MODEL)
        assert result.model is MODEL and "tolerates nobody" in result.skipped
        assert (result.report.f, result.report.f_asked) == (0, 0.2)
        assert f"round {number} is not protected: " in caplog.text
    allowed = RobustServer("tq", f=0.2, allow_unprotected=True).aggregate(1, honest(2), model=MODEL)
    assert not allowed.skipped and allowed.report.unprotected and allowed.model is not MODEL
    for rule in ("mean", "tq(f=0)"):
        asked_for = RobustServer(rule).aggregate(1, honest(2), model=MODEL)
        assert not asked_for.skipped and not asked_for.report.unprotected


@dataclass(frozen=True)
class Failing(ra.GramRule):
    f: ra.F = None

    def weights(self, sketch: ra.Sketch) -> ra.Weights:
        raise ZeroDivisionError("one over nought")


def test_a_rule_that_raises_costs_the_round_not_the_run() -> None:
    result = RobustServer(Failing(f=2)).aggregate(1, honest(), model=MODEL)
    assert result.model is MODEL
    assert "one over nought" in result.skipped


def test_callbacks_neither_hold_up_the_round_nor_end_it(caplog: pytest.LogCaptureFixture) -> None:
    go, seen = threading.Event(), list[RoundReport]()

    def wait(number: int, client: str, reason: str) -> None:
        assert go.wait(60)
        raise RuntimeError("my mail server is down")

    server = RobustServer("tq", f=2, on_reject=wait, on_round=seen.append)
    replies = honest() | {"site-4": {name: w + 100 * w.is_floating_point() for name, w in draw_update(4).items()}}
    result = server.aggregate(1, replies, model=MODEL)  # it comes back, though `wait` waits
    assert not seen
    go.set()
    assert server.flush()
    assert seen == [result.report]
    assert "on_reject failed" in caplog.text and "my mail server is down" in caplog.text


def test_calls_beyond_what_may_wait_are_dropped_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    from robagg.server.callbacks import Worker

    go, called = threading.Event(), list[int]()
    worker = Worker(logging.getLogger("robagg"), waiting=3)
    worker.call("slow", go.wait, 60)
    for i in range(10):
        worker.call("slow", called.append, i)
    assert caplog.text.count("slow is too slow") == 1
    go.set()
    assert worker.flush()
    assert 2 <= len(called) <= 4 and called == sorted(called)


def test_a_client_rejected_again_and_again_gives_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = RobustServer("tq", f=2, warn_after=(2, 3))
    for number in range(1, 5):
        replies = honest() | {"site-4": {name: w + 100 * w.is_floating_point() for name, w in draw_update(4).items()}}
        server.aggregate(number, replies, model=MODEL)
    assert caplog.text.count("client site-4 was rejected in 2 of its last 2 rounds") == 1


def test_what_clients_are_called_does_not_steer_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    replies = honest() | {"\x1b[2Jevil": {"\x1b[31mw": torch.ones(3)}, "asked": Failure("no\nnews")}
    RobustServer("tq", f=2).aggregate(1, replies, model=MODEL)
    assert "evil" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_report_is_short_and_steers_nothing_whatever_clients_write(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    strangers: dict[str, Any] = {"z" * 10**6 + str(i): {} for i in range(20)}
    replies = honest() | {"\x1b[2Jevil": Failure("no\nnews\x1b[2J" + "y" * 10**6)} | strangers
    server = RobustServer("tq", f=2, journal=path)
    report = server.aggregate(1, replies, model=MODEL, asked=[*NAMES, "\x1b[2Jevil"]).report
    assert "\x1b" not in str(report) and str(report).count("\n") == 10
    assert len(path.read_bytes()) < 20_000
    assert len(server.clients["\x1b[2Jevil"].last_reason) <= 300
    for row in summarise_clients([report]):
        assert str(row["client"]).isprintable() and str(row["last reason"]).isprintable()


def test_metrics_that_are_no_numbers_do_not_end_the_run(tmp_path: Path) -> None:
    """As a mean of the user's own gives them where one client's loss is NaN."""
    server = RobustServer("tq", f=2, journal=tmp_path / "rounds.jsonl")
    decision = server.decide(1, honest(), Model(MODEL))
    server.enter(decision, metrics={"loss": float("nan"), "curve": [1.0, float("inf")]})
    assert read_journal(tmp_path / "rounds.jsonl").rounds[0].metrics == {"loss": None, "curve": [1.0, None]}


def test_bad_arguments_are_sentences() -> None:
    with pytest.raises(ValueError, match="f goes with a rule given as text"):
        RobustServer(ra.TQ(f=1), f=2)
    with pytest.raises(TypeError, match="the model must be a mapping of names to arrays, got list"):
        RobustServer("tq").aggregate(1, honest(), model=[torch.zeros(3)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one floating-point array"):
        RobustServer("tq").aggregate(1, honest(), model={"n": torch.tensor(1)})
    with pytest.raises(TypeError, match="aside must be one pattern of names or several"):
        RobustServer("tq", aside=(3,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weighted": "no"}, "weighted must be True or False, got 'no'"),
        ({"allow_unprotected": "false"}, "allow_unprotected must be True or False, got 'false'"),
        ({"partial": "yes"}, "partial must be True or False, got 'yes'"),
        ({"max_bytes": "1MB"}, "max_bytes must be a whole number, at least 1, got '1MB'"),
        ({"max_skipped": 0}, "max_skipped must be a whole number, at least 1, got 0"),
        ({"aside": None}, "aside must be one pattern of names or several, got None"),
        ({"on_reject": 5}, "on_reject must be a function, got 5"),
        ({"on_round": "print"}, "on_round must be a function or several, got 'p'"),
        ({"logger": "robagg"}, "logger must be a logger of Python's logging, got 'robagg'"),
        ({"journal": ""}, "journal must be the path of a file, got ''"),
        ({"state": 5}, "state must be the path of a file, got 5"),
        ({"journal": "one", "state": "./one"}, "journal and state must be two files, got 'one' for both"),
    ],
)
def test_a_wrong_option_is_told_before_the_first_round(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        RobustServer("tq", f=1, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"replies": [{}]}, "replies must be a mapping of clients' names to what they sent, got list"),
        ({"asked": "site-1"}, "asked must be the names of clients, got 'site-1'"),
        ({"asked": 5}, "asked must be the names of clients, got 5"),
        ({"asked": [["site-1"]]}, "a client's name must be a text or a whole number, got ['site-1']"),
        ({"replies": {b"site-1": {}}}, "a client's name must be a text or a whole number, got b'site-1'"),
        ({"round_number": 1.5}, "the round must be a whole number, got 1.5"),
    ],
)
def test_a_wrong_call_is_told_and_enters_nothing(call: dict[str, Any], words: str, tmp_path: Path) -> None:
    server = RobustServer("tq", f=1, journal=tmp_path / "rounds.jsonl", state=tmp_path / "server.pt")
    with pytest.raises(TypeError, match=re.escape(words)):
        server.aggregate(**{"round_number": 1, "replies": honest(), "model": MODEL} | call)
    assert not list(tmp_path.iterdir()) and not server.clients


def test_a_model_that_is_not_finite_is_not_laid_at_the_clients_door(tmp_path: Path) -> None:
    lost = {name: torch.full_like(w, float("nan")) if w.is_floating_point() else w for name, w in MODEL.items()}
    result = RobustServer("rfa", f=1).aggregate(1, honest(), model=lost)
    assert "the model that was sent out must be finite for rfa(f=1)" in result.skipped
    assert not result.report.rejected
    result = RobustServer("tq", f=1, journal=tmp_path / "rounds.jsonl").aggregate(1, honest(), model=lost)
    assert not result.skipped and all(bool(w.isfinite().all()) for w in result.model.values())
    (report,) = read_journal(tmp_path / "rounds.jsonl").rounds
    assert "not finite" in replay_round(report, ra.Krum(f=1)).skipped
