"""What the strategy promises besides surviving hostile replies."""

from __future__ import annotations

import inspect
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM, FedProx, FedYogi
from flwr.serverapp.strategy.strategy import Strategy

import robagg as ra
from flower.federation import (
    Grid,
    answer,
    ask,
    draw_model,
    draw_update,
    fill,
    flatten,
    honest_mean,
    pack,
    run_round,
    unpack,
    watch,
)
from robagg.flower import RobustStrategy
from robagg.server import RoundReport, SkippedRoundsError, read_journal

N = 9
MODEL = draw_model()


def honest(n: int = N, **metrics: Any) -> list[Any]:
    return [fill(draw_update(MODEL, i), **metrics) for i in range(n)]


def test_mean_gives_what_fedavg_gives() -> None:
    plain, _ = run_round(FedAvg(), pack(MODEL), honest())
    robust, _ = run_round(RobustStrategy("mean"), pack(MODEL), honest())
    assert np.allclose(flatten(unpack(robust)), flatten(unpack(plain)), atol=1e-6)


@dataclass(frozen=True)
class Alike(ra.TQ):
    """TQ for clients that all count alike."""

    takes_weights: ClassVar[bool] = False


@dataclass(frozen=True)
class Delegate(ra.Rule):
    """A rule of somebody else's that lets TQ decide."""

    def solve(self, passes: Any, f: int, shares: Any) -> Any:
        return ra.TQ(f=2).solve(passes, 2, shares)


def test_a_rule_of_ones_own_is_told_of_as_ours_are() -> None:
    replies = [*honest(N - 2), *(fill(draw_update(MODEL, i, size=50.0)) for i in range(2))]
    told: list[RoundReport] = []
    for rule in (ra.TQ(f=2), Delegate()):
        strategy = RobustStrategy(rule)
        seen = watch(strategy)
        run_round(strategy, pack(MODEL), replies)
        told.append(seen[0])
    assert told[0].clients == told[1].clients and told[0].tau == told[1].tau
    assert len(told[1].rejected) == 2


def test_the_rule_has_no_default_and_bad_arguments_are_sentences() -> None:
    with pytest.raises(TypeError, match="rule"):
        RobustStrategy()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unknown rule"):
        RobustStrategy("tqq")
    with pytest.raises(ValueError, match="has its own"):
        RobustStrategy(ra.TQ(f=1), f=2)
    with pytest.raises(ValueError, match="must count clients by their votes"):
        RobustStrategy(Alike(), weighted=True)
    with pytest.raises(ValueError, match=r"max_weight must be below 0\.25 for tq"):
        RobustStrategy(ra.TQ(f=2), weighted=True, max_weight=0.3)
    with pytest.raises(ValueError, match="to the strategy inside"):
        RobustStrategy("tq", around=FedAdam(), fraction_train=0.5)
    with pytest.raises(TypeError, match="around must be"):
        RobustStrategy("tq", around="fedadam")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_weight must be a share > 0"):
        RobustStrategy("tq", max_weight=0.0)
    with pytest.raises(ValueError, match="at least 1"):
        RobustStrategy("tq", min_valid_replies=0)
    with pytest.raises(ValueError, match="whole number, at least 1, got '3'"):
        RobustStrategy("tq", min_valid_replies="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="observe must be True or False, got 'no'"):
        RobustStrategy("tq", observe="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_reject must be a function, got 5"):
        RobustStrategy("tq", on_reject=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 <= k <= m"):
        RobustStrategy("tq", warn_after=(5, 3))
    for wrong in (3, (1, 2, 3), ("1", "2"), "35", None):
        with pytest.raises(ValueError, match=r"warn_after=\(k, m\) must be two whole numbers, 1 <= k <= m, got "):
            RobustStrategy("tq", warn_after=wrong)  # type: ignore[arg-type]


def test_start_differs_from_flowers_in_the_default_timeout_only() -> None:
    ours, theirs = (inspect.signature(cls.start).parameters for cls in (RobustStrategy, Strategy))
    assert list(ours) == list(theirs)
    assert ours["timeout"].default == 600
    assert [p.default for name, p in ours.items() if name != "timeout"] == [
        p.default for name, p in theirs.items() if name != "timeout"
    ]


def test_the_first_round_asks_all_the_nodes_that_were_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    messages = RobustStrategy("tq", min_available_nodes=4).configure_train(
        1, pack(MODEL), ConfigRecord(), Grid(4, arrivals=[2, 2, 3])
    )
    assert len(list(messages)) == 4


def test_a_node_that_leaves_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    for strategy in (
        RobustStrategy("tq", min_available_nodes=4),
        RobustStrategy("tq", around=FedAdam(min_available_nodes=4)),
    ):
        for server_round, present in ((1, 4), (2, 3)):
            arguments: Any = (server_round, pack(MODEL), ConfigRecord(), Grid(present))
            assert len(list(strategy.configure_train(*arguments))) == present
            assert len(list(strategy.configure_evaluate(*arguments))) == present
        assert (strategy.around or strategy).min_available_nodes == 4
    leaving = Grid(4, arrivals=[4, 4, 2])  # two nodes leave between counting and sampling
    assert len(list(RobustStrategy("tq").configure_train(1, pack(MODEL), ConfigRecord(), leaving))) == 4  # type: ignore[arg-type]


def test_dead_and_silent_nodes_are_named_and_lower_n_not_f() -> None:
    strategy = RobustStrategy(ra.TQ(f=3))
    reports = watch(strategy)
    messages = ask(strategy, pack(MODEL), N)
    replies = answer(messages, [None, *honest()[1:]])
    # What a grid makes of a node that died: it does not say who it was.
    dead = Message(Error(3, "node is gone"), reply_to=messages[1])
    dead.metadata.__dict__["_src_node_id"] = 1
    arrays, _ = strategy.aggregate_train(1, [dead, *replies[1:]])
    assert arrays is not None  # 7 = 2f+1 are left
    lost = {client.client: client.reason for client in reports[0].clients if not client.replied}
    assert lost == {"100": "no reply before the timeout", "101": "error 3: node is gone"}
    assert reports[0].answered == 7
    assert not reports[0].rejected
    arrays, metrics = run_round(strategy, pack(MODEL), [Error(1, "bug")] * 3 + honest()[3:])
    assert arrays is None  # 6 replies cannot stand 3 Byzantine ones
    assert "n must be at least 2f+1" in reports[1].skipped
    assert metrics["robagg-skipped"] == 1


def test_a_second_reply_of_a_node_is_not_counted() -> None:
    strategy = RobustStrategy("mean")
    reports = watch(strategy)
    messages = ask(strategy, pack(MODEL), N)
    strategy.aggregate_train(1, answer(messages, honest()) * 2)
    assert reports[0].answered == N


def test_a_share_follows_the_number_of_replies() -> None:
    strategy = RobustStrategy("tm", f=0.3)
    for n in (9, 5, 3):
        arrays, _ = run_round(strategy, pack(MODEL), honest(n))
        wanted = ra.TM(f=min(math.ceil(0.3 * n), (n - 1) // 2))([draw_update(MODEL, i) for i in range(n)])
        assert np.allclose(flatten(unpack(arrays)), flatten(wanted), atol=1e-6)


def test_one_reply_of_four_does_not_move_the_model_and_the_f_in_force_is_everywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The example of the guide while one of its five nodes is down: 0.2 of four is one."""
    logging.getLogger("flwr").propagate = True
    logging.getLogger("flwr").setLevel(logging.INFO)
    strategy = RobustStrategy("nnm >> tq", f=0.2, log_file=tmp_path / "rounds.jsonl")
    far = fill({name: w + 1e6 for name, w in MODEL.items()})
    arrays, metrics = run_round(strategy, pack(MODEL), [*honest(3), far, Error(1, "down")])
    assert np.linalg.norm(flatten(unpack(arrays)) - honest_mean(MODEL, 3)) < 1
    assert metrics["robagg-f"] == 1
    (report,) = read_journal(tmp_path / "rounds.jsonl").rounds
    assert (report.f, report.f_asked, report.asked, report.answered) == (1, 0.2, 5, 4)
    assert "f in force 1" in caplog.text
    arrays, metrics = run_round(strategy, pack(MODEL), [*honest(1), far, Error(1, "down")], 2)
    assert arrays is None and metrics["robagg-skipped"] == 1
    assert "round 2 is not protected" in caplog.text


def test_too_few_sound_replies_skip_the_round() -> None:
    strategy = RobustStrategy("tq", min_valid_replies=5)
    bad = {name: np.full_like(w, np.nan) for name, w in MODEL.items()}
    reports = watch(strategy)
    for broken in (fill(bad), RecordDict()):
        arrays, _ = run_round(strategy, pack(MODEL), [broken] * 2 + honest(4))
        assert arrays is None
        assert reports[-1].skipped == "sound replies must be at least 5, got 4"
        assert len(reports[-1].rejected) == 2
    assert run_round(strategy, pack(MODEL), honest(5))[0] is not None


def test_every_broken_reply_is_named_in_a_skipped_round() -> None:
    """Whatever it is skipped for: too few sound replies for the rule, too few at all, or too few for the user."""
    nan = fill({name: np.full_like(w, np.nan) for name, w in MODEL.items()})
    one = draw_update(MODEL, 0)
    one["head.weight"][0, 0] = -np.inf
    broken = [nan, nan, fill(one), RecordDict()]
    for strategy, sound, why in (
        (RobustStrategy("nnm >> cm", f=2), 3, "or broken ones at most f, got 3 sound and 4 broken of 7"),
        (RobustStrategy("rfa", f=2), 3, "got 3 sound and 4 broken of 7"),
        (RobustStrategy("tq", f=4), 4, "n must be at least 2f+1, got n=8, f=4"),
        (RobustStrategy("mean", min_valid_replies=8), 7, "sound replies must be at least 8, got 7"),
        (RobustStrategy("mean", min_valid_replies=12), 7, "sound replies must be at least 12, got 7"),
    ):
        reports = watch(strategy)
        arrays, metrics = run_round(strategy, pack(MODEL), [*honest(sound), *broken])
        assert arrays is None
        assert reports[0].skipped.endswith(why)
        assert metrics["robagg-rejected-nodes"] == [100 + sound + i for i in range(4)]
        assert [client.reason for client in reports[0].rejected[:3]] == ["not finite"] * 3


def test_small_updates_on_large_weights_lose_nothing() -> None:
    """Norm 0.01 on weights of squared norm 3000: where Krum on raw float32 distances picks attackers."""
    rng = np.random.default_rng(0)
    for trial in range(12):
        w = {"w": (rng.standard_normal(3000)).astype(np.float32)}
        step = 0.01 * rng.standard_normal(3000) / np.sqrt(3000)
        rows = [w["w"] + step + 0.003 * rng.standard_normal(3000) / np.sqrt(3000) for _ in range(8)]
        rows += [w["w"] - step] * 3
        sent = [{"w": row.astype(np.float32)} for row in rows]
        exact = [row["w"].astype(np.float64) - w["w"].astype(np.float64) for row in sent]
        for rule in (ra.Krum(f=3), ra.TQ(f=3), ra.NNM(f=3) >> ra.CM(f=3), ra.RFA(f=3, smoothing=1e-6)):
            arrays, _ = run_round(RobustStrategy(rule), pack(w), [fill(row) for row in sent])
            moved = unpack(arrays)["w"].astype(np.float64) - w["w"]
            wanted = rule(np.stack(exact))
            assert np.linalg.norm(moved - wanted) < 0.002 * np.linalg.norm(wanted), (trial, rule)


def test_statistics_and_counters_stay_out_of_the_distances() -> None:
    shapes = {"w": (30,), "bn.running_mean": (4,), "bn.running_var": (4,)}
    model = draw_model(shapes=shapes) | {"bn.num_batches_tracked": np.array(5, np.int64)}
    rows = []
    for i in range(N):
        row = draw_update({k: model[k] for k in shapes}, i)
        row["bn.running_mean"] = np.full(4, 10.0**i, np.float32)
        rows.append(row | {"bn.num_batches_tracked": np.array(i, np.int64)})
    strategy = RobustStrategy(ra.TQ(f=2))
    reports = watch(strategy)
    arrays, _ = run_round(strategy, pack(model), [fill(row) for row in rows])
    result = unpack(arrays)
    assert np.allclose(result["w"], ra.TQ(f=2)([{"w": row["w"]} for row in rows])["w"], atol=1e-6)
    assert np.array_equal(result["bn.running_mean"], np.full(4, 10.0 ** (N // 2), np.float32))
    assert result["bn.num_batches_tracked"] == N // 2
    assert result["bn.num_batches_tracked"].dtype == np.int64
    assert max(client.distance for client in reports[0].clients) < 10  # type: ignore[type-var]
    arrays, _ = run_round(RobustStrategy("cm", aside=("w",)), pack({"w": model["w"], "v": model["w"]}),
                          [fill({"w": row["w"], "v": row["w"]}) for row in rows])  # fmt: skip
    assert arrays is not None
    assert RobustStrategy("cm", aside="12").server.aside == ("12",)
    with pytest.raises(ValueError, match="at least one floating-point array"):
        run_round(RobustStrategy("cm", aside=("*",)), pack(model), [fill(row) for row in rows])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("rule", [ra.TQ(f=2), ra.RFA(f=2)], ids=str)
def test_every_array_comes_back_in_its_dtype_order_and_shape(dtype: type, rule: ra.Rule) -> None:
    model = {"c": draw_model()["layer.weight"].astype(dtype), "f": np.asfortranarray(draw_model(1)["layer.weight"])}
    model |= {"scalar": np.array(0.5, dtype), "empty": np.zeros((0, 3), dtype)}
    rows = [{k: (v + 0.01 * i).astype(v.dtype) for k, v in model.items()} for i in range(N)]
    arrays, _ = run_round(RobustStrategy(rule), pack(model), [fill(row) for row in rows])
    for name, value in unpack(arrays).items():
        assert value.dtype == model[name].dtype
        assert value.shape == model[name].shape
        assert np.allclose(value, model[name].astype(float) + 0.04, atol=0.02)


@pytest.mark.parametrize(
    ("dtype", "far"), [(np.float16, 0), (np.float16, 1e4), (np.float32, 0), (np.float32, 1e30), (np.float64, 1e30)]
)
def test_reported_distances_are_those_to_the_value(dtype: type, far: float) -> None:
    """Also in a model of several tiles, and with a Byzantine client so far off that float32 cannot hold the square."""
    rng = np.random.default_rng(0)
    sizes = {"w": 70_001, "b": 3}
    rows = [{name: rng.standard_normal(size).astype(dtype) for name, size in sizes.items()} for _ in range(N)]
    rows[0]["w"] += dtype(far)
    strategy = RobustStrategy(ra.NNM(f=2) >> ra.CM(f=2))
    reports = watch(strategy)
    arrays, _ = run_round(strategy, pack(rows[1]), [fill(row) for row in rows])
    exact = [np.linalg.norm(flatten(row) - flatten(unpack(arrays))) for row in rows]
    assert np.allclose([client.distance for client in reports[0].clients], exact, rtol=1e-3)


def test_other_writers_of_the_same_numbers_are_believed() -> None:
    forms = [np.asfortranarray, lambda x: x.astype(np.float64), lambda x: x.astype(">f4"), lambda x: x.astype("<f2")]
    contents = honest(4 * len(forms))
    for i, form in enumerate(forms):
        contents[i] = fill({name: form(value) for name, value in draw_update(MODEL, i).items()})
    strategy = RobustStrategy("mean")
    reports = watch(strategy)
    arrays, _ = run_round(strategy, pack(MODEL), contents)
    assert not reports[0].rejected
    assert np.allclose(flatten(unpack(arrays)), honest_mean(MODEL, len(contents)), atol=1e-3)


@pytest.mark.parametrize("make", [FedAdam, FedYogi, FedAvgM, FedProx, FedAvg])
def test_around_gets_the_robust_value_as_one_reply(make: Any) -> None:
    options = {"proximal_mu": 0.1} if make is FedProx else {}
    inner, twin = make(**options), make(**options)
    strategy = RobustStrategy(ra.CM(f=2), around=inner)
    arrays = twin_arrays = pack(MODEL)
    for server_round in (1, 2):
        start = unpack(arrays)
        rows = [draw_update(start, i) for i in range(N)]
        rows[0] = {name: np.full_like(w, np.nan) for name, w in start.items()}
        median = ra.CM(f=2)(rows)
        arrays, metrics = run_round(strategy, arrays, [fill(row) for row in rows], server_round)
        ask(twin, twin_arrays, N, server_round)
        twin_arrays, _ = twin.aggregate_train(
            server_round, [Message(fill(median), dst_node_id=1, message_type="train")]
        )
        assert np.allclose(flatten(unpack(arrays)), flatten(unpack(twin_arrays)), atol=1e-6)
        assert metrics["loss"] == 1.0
        assert all(array.dtype == "float32" for array in arrays.values())


class Silent(FedAvg):  # type: ignore[misc,unused-ignore]
    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        return None, None


class Loud(FedAvg):  # type: ignore[misc,unused-ignore]
    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        raise InconsistentMessageReplies("one reply is\x1b[2J too few")


class Other(FedAvg):  # type: ignore[misc,unused-ignore]
    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        return pack({"else": np.zeros(2)}), None


@pytest.mark.parametrize(
    ("around", "why"),
    [
        (Silent, "Silent made no model of the robust value"),
        (Loud, "Loud failed on the robust value: one reply is\\x1b[2J too few"),
        (Other, "Other failed on the robust value: arrays must be named as the model's are, got else"),
    ],
)
def test_around_that_makes_nothing_of_the_robust_value_keeps_the_model(around: Any, why: str) -> None:
    strategy = RobustStrategy("cm", f=2, around=around())
    reports = watch(strategy)
    arrays, metrics = run_round(strategy, pack(MODEL), honest())
    assert arrays is None and metrics["robagg-skipped"] == 1 and metrics["loss"] == 1.0
    assert reports[0].skipped == why


@pytest.mark.parametrize("around", [None, FedAvg])
def test_looking_on_evaluates_as_fedavg_does(around: Any) -> None:
    contents = [tell(accuracy=float(i), **{"num-examples": 10**i}) for i in range(3)]
    wanted = evaluate(FedAvg(), contents)
    assert evaluate(RobustStrategy("cm", observe=True, around=around and around()), contents) == wanted
    assert evaluate(RobustStrategy("cm"), contents)["accuracy"] == 1.0  # type: ignore[index]
    claims = [tell(accuracy=0.5, **{"num-examples": size}) for size in (10, 10, -5)]
    assert evaluate(RobustStrategy("cm", observe=True), claims) == evaluate(FedAvg(), claims)
    unlike = [*contents, RecordDict({"metrics": MetricRecord({"else": 1.0})})]
    assert evaluate(RobustStrategy("cm", observe=True), unlike) is None


def test_around_leaves_statistics_to_the_median() -> None:
    model = MODEL | {"bn.running_var": np.ones(3, np.float32), "n": np.array([4], np.int64)}
    rows = [
        draw_update(MODEL, i) | {"bn.running_var": np.full(3, 9.0, np.float32), "n": np.array([7])} for i in range(N)
    ]
    arrays, _ = run_round(RobustStrategy("tq", around=FedAdam()), pack(model), [fill(row) for row in rows])
    assert np.array_equal(unpack(arrays)["bn.running_var"], np.full(3, 9.0, np.float32))
    assert np.array_equal(unpack(arrays)["n"], np.array([7]))


def test_observe_gives_fedavgs_model_and_the_rules_verdict() -> None:
    contents = honest()
    contents[0] = fill({name: w + 100 for name, w in MODEL.items()})
    plain, _ = run_round(FedAvg(), pack(MODEL), contents)
    strategy = RobustStrategy(ra.TQ(f=2), observe=True)
    reports = watch(strategy)
    observed, metrics = run_round(strategy, pack(MODEL), contents)
    assert np.array_equal(flatten(unpack(observed)), flatten(unpack(plain)))
    assert [client.client for client in reports[0].rejected] == ["100"]
    assert reports[0].observed
    assert metrics["robagg-rejected"] == 1
    contents[1] = RecordDict()  # FedAvg raises, the run goes on
    assert run_round(strategy, pack(MODEL), contents)[0] is None


def test_a_rule_that_looks_on_remembers_as_one_that_decides() -> None:
    told: list[list[RoundReport]] = []
    for observe in (False, True):
        strategy = RobustStrategy(ra.CC(f=2, tau=0.05), observe=observe)
        told.append(watch(strategy))
        for server_round in (1, 2, 3):
            run_round(strategy, pack(MODEL), honest(), server_round)
    decided, observed = told
    assert decided[2].clients != decided[0].clients
    assert [report.clients for report in observed] == [report.clients for report in decided]


def test_a_rule_that_remembers_gets_its_last_value() -> None:
    rule = ra.CC(f=2, tau=0.05)
    strategy = RobustStrategy(rule)
    rows = [draw_update(MODEL, i) for i in range(N)]
    changes = [{name: row[name] - MODEL[name] for name in row} for row in rows]
    state = None
    for server_round in (1, 2, 3):
        arrays, _ = run_round(strategy, pack(MODEL), [fill(row) for row in rows], server_round)
        verdict, state = rule.step(changes, state)
        assert np.allclose(flatten(unpack(arrays)) - flatten(MODEL), flatten(verdict.value), atol=1e-5)


def test_nobody_asked_is_no_skipped_round() -> None:
    strategy = RobustStrategy("tq", fraction_train=0.0)
    strategy.configure_train(1, pack(MODEL), ConfigRecord(), Grid(4))  # type: ignore[arg-type]
    assert strategy.aggregate_train(1, []) == (None, None)


class SilentGrid(Grid):
    def send_and_receive(self, messages: Any, *, timeout: float) -> list[Message]:
        return []


def test_a_run_of_skipped_rounds_ends_with_the_model_it_began_with_where_one_asks_for_it() -> None:
    strategy = RobustStrategy("tq", fraction_evaluate=0.0, max_skipped=None)
    result = strategy.start(SilentGrid(4), pack(MODEL), num_rounds=2)  # type: ignore[arg-type]
    assert np.array_equal(flatten(unpack(result.arrays)), flatten(MODEL))
    assert [m["robagg-skipped"] for m in result.train_metrics_clientapp.values()] == [1, 1]


@pytest.mark.parametrize("num_rounds", [1, 2, 3, 9])
def test_a_run_in_which_nothing_is_learned_ends_with_an_error(num_rounds: int) -> None:
    """After three skipped rounds in a row, or at its end where all were skipped."""
    strategy = RobustStrategy("tq", fraction_evaluate=0.0)
    reports = watch(strategy)
    with pytest.raises(SkippedRoundsError, match=f"the last {min(3, num_rounds)} rounds were skipped"):
        strategy.start(SilentGrid(4), pack(MODEL), num_rounds=num_rounds)  # type: ignore[arg-type]
    assert len(reports) == min(3, num_rounds) - (num_rounds >= 3)  # the last one raises before it is seen here


def test_nobody_can_answer_for_another_or_without_being_asked(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    strategy = RobustStrategy("mean")
    reports = watch(strategy)
    messages = ask(strategy, pack(MODEL), N)
    replies = answer(messages, honest())
    far = fill({name: w + 1e6 for name, w in MODEL.items()})
    forged = answer([messages[5]], [far])[0]
    forged.metadata.__dict__["_src_node_id"] = 100
    stranger = answer([messages[5]], [far])[0]
    stranger.metadata.__dict__.update(_src_node_id=999, _reply_to_message_id="?")
    arrays, _ = strategy.aggregate_train(1, [forged, stranger, *replies])
    assert np.allclose(flatten(unpack(arrays)), honest_mean(MODEL, N), atol=1e-5)
    assert reports[0].answered == N and not reports[0].rejected
    assert "node 100 answers what it was not asked" in caplog.text
    assert "node 999 answers what it was not asked" in caplog.text


@pytest.mark.parametrize("around", [None, FedAdam, FedAvgM])
def test_an_app_that_sends_a_part_of_its_model_trains_it(around: Any) -> None:
    """FedBN and heads: the rest stays as it is, to the last bit, and the round is not skipped."""
    model = MODEL | {"bn.running_mean": np.full(3, 0.1, np.float32), "n": np.array(4)}
    strategy = RobustStrategy("cm", f=2, around=around and around())
    arrays = pack(model)
    for server_round in (1, 2):
        contents = [fill({name: draw_update(MODEL, i)[name] for name in ("head.weight",)}) for i in range(N)]
        arrays, metrics = run_round(strategy, arrays, contents, server_round)
        assert metrics["robagg-skipped"] == 0 and metrics["robagg-rejected"] == 0
    new = unpack(arrays)
    assert list(new) == list(model)
    assert not np.array_equal(new["head.weight"], model["head.weight"])
    for name in model.keys() - {"head.weight"}:
        assert np.array_equal(new[name], model[name]) and new[name].dtype == model[name].dtype


def test_arrays_that_are_missing_or_too_many_are_named() -> None:
    strategy = RobustStrategy("tq", f=2, partial=False)
    reports = watch(strategy)
    contents = [fill({"head.weight": MODEL["head.weight"]})] * N
    assert run_round(strategy, pack(MODEL), contents)[0] is None
    assert reports[0].clients[0].reason == "lacks 'layer.weight' and 1 more: 1 arrays came where 3 are expected"
    assert "do you send a part of the model?" in reports[0].skipped


def evaluate(strategy: RobustStrategy, contents: list[Any]) -> MetricRecord | None:
    messages = list(strategy.configure_evaluate(1, pack(MODEL), ConfigRecord(), Grid(len(contents))))  # type: ignore[arg-type]
    for i, message in enumerate(messages):
        message.metadata.__dict__["_message_id"] = f"e{i}"
    return strategy.aggregate_evaluate(1, answer(messages, contents))


def tell(**metrics: Any) -> RecordDict:
    return RecordDict({"metrics": MetricRecord({"num-examples": 10} | metrics)})


def test_evaluation_is_a_trimmed_mean_that_nothing_can_spoil() -> None:
    contents: list[Any] = [tell(accuracy=0.5 + 0.01 * i, per_class=[1.0, float(i)]) for i in range(7)]
    contents += [tell(accuracy=1e12), tell(accuracy=float("nan"), per_class=[1.0]), RecordDict(), Error(1, "no")]
    contents += [tell(accuracy=[1.0, 2.0], other=3), RecordDict({"metrics": MetricRecord({"num-examples": 0})})]
    metrics = evaluate(RobustStrategy("tq", f=3), contents)
    assert metrics is not None
    assert 0.5 <= metrics["accuracy"] <= 0.56  # type: ignore[operator]
    assert "num-examples" not in metrics
    assert "other" not in metrics
    assert evaluate(RobustStrategy("tq"), [Error(1, "no")] * 3) is None


def test_a_function_for_metrics_of_ones_own_is_used_and_may_fail() -> None:
    def count(records: list[RecordDict], key: str) -> MetricRecord:
        return MetricRecord({"count": len(records)})

    def fail(records: list[RecordDict], key: str) -> MetricRecord:
        raise ZeroDivisionError

    strategy = RobustStrategy("tq", f=2, train_metrics_aggr_fn=count, evaluate_metrics_aggr_fn=fail)
    _, metrics = run_round(strategy, pack(MODEL), [RecordDict(), *honest()])
    assert metrics["count"] == N
    assert evaluate(strategy, [tell(accuracy=1.0)] * 3) == MetricRecord()


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize("around", [None, FedAvg, FedAdam])
def test_a_function_for_metrics_that_fails_costs_the_metrics_of_the_round_only(observe: bool, around: Any) -> None:
    def fail(records: list[RecordDict], key: str) -> MetricRecord:
        raise ZeroDivisionError

    options: Any = {"train_metrics_aggr_fn": fail}
    inside = {"around": around(**options)} if around else options
    strategy = RobustStrategy("tq", observe=observe, **inside)
    arrays, metrics = run_round(strategy, pack(MODEL), honest())
    assert arrays is not None
    assert "loss" not in metrics
    assert metrics["robagg-replies"] == N
    assert (strategy.around or strategy).train_metrics_aggr_fn is fail


def test_a_function_for_metrics_sees_the_clients_replies_and_nothing_else() -> None:
    """Not the one reply that the strategy inside gets, which holds what the function itself has made."""
    seen: list[int] = []

    def rename(records: list[RecordDict], key: str) -> MetricRecord:
        seen.append(len(records))
        return MetricRecord({"first": records[0]["metrics"]["loss"]})  # type: ignore[index]

    _, metrics = run_round(RobustStrategy("tq", around=FedAdam(train_metrics_aggr_fn=rename)), pack(MODEL), honest())
    assert metrics["first"] == 1.0
    assert seen == [N]


@pytest.mark.parametrize("told", [None, {"count": 1}, MetricRecord({"count": 1})])
def test_a_function_for_metrics_may_give_a_dict_or_nothing(told: Any) -> None:
    options: Any = {name: lambda records, key: told for name in ("train_metrics_aggr_fn", "evaluate_metrics_aggr_fn")}
    for strategy in (RobustStrategy("tq", **options), RobustStrategy("tq", around=FedAdam(**options))):
        arrays, metrics = run_round(strategy, pack(MODEL), honest())
        assert arrays is not None
        assert metrics.get("count") == (told and 1)
        assert metrics["robagg-replies"] == N
        assert evaluate(strategy, [tell(accuracy=1.0)] * 3) == MetricRecord(told or {})


@pytest.mark.parametrize(("n", "max_weight", "warned"), [(10, 0.1, True), (11, 0.1, False), (5, 0.4, False)])
def test_claims_that_the_cap_makes_alike_give_one_warning(
    n: int, max_weight: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("flwr").propagate = True
    strategy = RobustStrategy("mean", weighted=True, max_weight=max_weight)
    reports = watch(strategy)
    contents = [fill(draw_update(MODEL, i), **{"num-examples": 10 + 90 * (i == 0)}) for i in range(n)]
    for server_round in (1, 2):
        run_round(strategy, pack(MODEL), contents, server_round)
    assert (reports[0].clients[0].weight == pytest.approx(1 / n)) is warned
    messages = [r.getMessage() for r in caplog.records if "client weights change nothing" in r.getMessage()]
    assert len(messages) == warned
    assert all("max_weight=0.1" in message and "each of 10 clients" in message for message in messages)
