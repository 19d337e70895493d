"""Worker momentum: the paper's formula, on a client's own memory."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from flower.federation import draw_model, draw_update, fill, flatten, pack, unpack
from robagg.flower import worker_momentum

MODEL = draw_model()


def make_context() -> Context:
    return Context(run_id=1, node_id=7, node_config={}, state=RecordDict(), run_config={})


def send(app: ClientApp, context: Context, numbers: Any, kind: str = "train") -> Message:
    content = RecordDict({"arrays": pack(numbers), "config": ConfigRecord()})
    return app(Message(content, dst_node_id=7, message_type=kind), context)


def make_app(mu: float, trained: list[Any], **options: Any) -> ClientApp:
    app = ClientApp(mods=[worker_momentum(mu, **options)])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return Message(fill(trained.pop(0)), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return Message(fill(trained.pop(0)), reply_to=message)

    return app


def test_it_sends_the_running_average_of_the_updates() -> None:
    mu, context = 0.9, make_context()
    rows = [draw_update(MODEL, i) for i in range(4)]
    app = make_app(mu, list(rows))
    g = np.zeros(len(flatten(MODEL)))
    for row in rows:
        g = mu * g + (1 - mu) * (flatten(row) - flatten(MODEL))
        sent = unpack(next(iter(send(app, context, MODEL).content.array_records.values())))
        assert np.allclose(flatten(sent) - flatten(MODEL), g, atol=1e-6)
        assert all(sent[name].dtype == w.dtype for name, w in MODEL.items())


def test_its_state_is_records_that_engines_keep() -> None:
    context = make_context()
    send(make_app(0.5, [draw_update(MODEL, 0)]), context, MODEL)
    record = context.state["robagg.momentum"]
    copy = type(record).inflate(record.deflate(), record.children)
    assert np.array_equal(flatten(unpack(copy)), flatten(unpack(record)))


def test_mu_of_zero_sends_what_was_trained_and_evaluation_is_left_alone() -> None:
    row = draw_update(MODEL, 0)
    context = make_context()
    sent = send(make_app(0.0, [row]), context, MODEL)
    assert np.allclose(flatten(unpack(sent.content["arrays"])), flatten(row), atol=1e-6)  # type: ignore[arg-type]
    sent = send(make_app(0.9, [row]), make_context(), MODEL, kind="evaluate")
    assert np.array_equal(flatten(unpack(sent.content["arrays"])), flatten(row))  # type: ignore[arg-type]


def test_statistics_and_counters_are_sent_as_they_are() -> None:
    model = MODEL | {"bn.running_mean": np.zeros(3, np.float32), "n": np.array(1)}
    row = draw_update(MODEL, 0) | {"bn.running_mean": np.full(3, 5.0, np.float32), "n": np.array(9)}
    sent = unpack(send(make_app(0.9, [row]), make_context(), model).content["arrays"])  # type: ignore[arg-type]
    assert np.array_equal(sent["bn.running_mean"], row["bn.running_mean"])
    assert sent["n"] == 9


def test_a_round_that_blew_up_does_not_stay_in_the_memory() -> None:
    context, row = make_context(), draw_update(MODEL, 0)
    bad = {name: np.full_like(w, np.nan) for name, w in MODEL.items()}
    app = make_app(0.5, [row, bad, row])
    send(app, context, MODEL)
    assert np.isnan(flatten(unpack(send(app, context, MODEL).content["arrays"]))).all()  # type: ignore[arg-type]
    sent = flatten(unpack(send(app, context, MODEL).content["arrays"]))  # type: ignore[arg-type]
    assert np.allclose(sent - flatten(MODEL), 0.75 * (flatten(row) - flatten(MODEL)), atol=1e-6)


def test_another_model_starts_anew() -> None:
    context = make_context()
    send(make_app(0.5, [draw_update(MODEL, 0)]), context, MODEL)
    other = draw_model(shapes={"w": (4,)})
    sent = unpack(send(make_app(0.5, [draw_update(other, 0)]), context, other).content["arrays"])  # type: ignore[arg-type]
    assert np.allclose(sent["w"] - other["w"], 0.5 * (draw_update(other, 0)["w"] - other["w"]), atol=1e-6)


def test_what_is_no_copy_of_the_model_is_sent_as_it_is_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    part = {"layer.bias": np.ones(7, np.float32)}
    misshapen = MODEL | {"layer.bias": np.ones(8, np.float32)}
    for replies, why in (([part, part], "lacks layer.weight, head.weight"), ([misshapen], "has the shape (8,)")):
        caplog.clear()
        app, context = make_app(0.9, list(replies)), make_context()
        for row in replies:
            sent = unpack(send(app, context, MODEL).content["arrays"])  # type: ignore[arg-type]
            assert np.array_equal(flatten(sent), flatten(row))
        assert len(caplog.messages) == 1 and why in caplog.messages[0]
    caplog.clear()
    message = Message(RecordDict({"config": ConfigRecord()}), dst_node_id=7, message_type="train")
    sent = unpack(make_app(0.9, [MODEL])(message, make_context()).content["arrays"])  # type: ignore[arg-type]
    assert np.array_equal(flatten(sent), flatten(MODEL))
    assert "the message holds 0 array records where one is expected" in caplog.text


def test_a_text_is_one_pattern() -> None:
    statistics = {"bn.running_mean": np.zeros(3, np.float32)}
    row = draw_update(MODEL, 0) | {"bn.running_mean": np.full(3, 5.0, np.float32)}
    for aside in ("bn.running_mean", "*running_mean", ["bn.*"]):
        app = make_app(0.9, [row], aside=aside)
        sent = unpack(send(app, make_context(), MODEL | statistics).content["arrays"])  # type: ignore[arg-type]
        assert np.array_equal(sent["bn.running_mean"], row["bn.running_mean"])
        assert not np.allclose(sent["layer.bias"], row["layer.bias"])
    with pytest.raises(TypeError, match=r"one pattern of names or several, got \(3, 4\)"):
        worker_momentum(0.9, aside=(3, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize("mu", [-0.1, 1.0, 2.0])
def test_mu_is_checked(mu: float) -> None:
    with pytest.raises(ValueError, match="mu must be a number from 0 to below 1"):
        worker_momentum(mu)
