"""The hostile matrix straight through the strategy: nothing a client sends moves the model far or raises."""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import Array, ArrayRecord, Error, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

import robagg as ra
from flower.federation import (
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
from flower.hostile import BROKEN, FAR
from robagg._core.rule import Rule
from robagg.flower import RobustStrategy

N, F = 11, 2
MODEL = draw_model()
RULES: list[Rule] = [
    ra.TQ(f=F),
    ra.CM(f=F),
    ra.TM(f=F),
    ra.Krum(f=F),
    ra.MultiKrum(f=F),
    ra.RFA(f=F),
    ra.Huber(f=F),
    ra.MCA(f=F),
    ra.CC(f=F, tau=1.0, iterations=10),
    ra.NNM(f=F) >> ra.CM(f=F),
    ra.Clipping(norm=2.0) >> ra.TM(f=F),
    ra.Bucketing() >> ra.TQ(f=F),
]
SPREAD = max(np.linalg.norm(flatten(draw_update(MODEL, i)) - honest_mean(MODEL, N)) for i in range(N))


def replies(*hostile, n: int = N):  # type: ignore[no-untyped-def]
    """n replies, the first of them hostile."""
    contents = [fill(draw_update(MODEL, i), loss=float(i)) for i in range(n)]
    sent = pack(MODEL)
    for i, attack in enumerate(hostile):
        contents[i] = attack(sent, pack(draw_update(MODEL, i)), MetricRecord({"num-examples": 10, "loss": 1e12}))
    return contents


def distance_to_honest(arrays, skip: int) -> float:  # type: ignore[no-untyped-def]
    honest = np.mean([flatten(draw_update(MODEL, i)) for i in range(skip, N)], axis=0)
    return float(np.linalg.norm(flatten(unpack(arrays)) - honest))


SOME = ["nan", "wrong-shape", "one-inf", *FAR]
PAIRS = [(name, rule) for rule in RULES for name in ([*BROKEN, *FAR] if rule in RULES[:1] + RULES[9:10] else SOME)]


@pytest.mark.parametrize(("name", "rule"), PAIRS, ids=lambda x: str(x))
def test_one_hostile_reply_does_not_move_the_model(name: str, rule: Rule) -> None:
    strategy = RobustStrategy(rule)
    arrays, metrics = run_round(strategy, pack(MODEL), replies((BROKEN | FAR)[name]))
    assert arrays is not None
    assert list(arrays) == list(MODEL)
    for key, value in unpack(arrays).items():
        assert value.shape == MODEL[key].shape
        assert value.dtype == MODEL[key].dtype
        assert np.isfinite(value).all()
    assert distance_to_honest(arrays, 1) < 1.5 * SPREAD
    assert 0 <= metrics["loss"] <= N


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reply_is_dropped_with_a_reason(name: str) -> None:
    told: list[tuple[int, int, str]] = []
    strategy = RobustStrategy("tq", f=F, on_reject=lambda *args: told.append(args))
    run_round(strategy, pack(MODEL), replies(BROKEN[name]))
    assert (1, 100) in [(round_, node) for round_, node, _ in told]
    reason = next(reason for _, node, reason in told if node == 100)
    assert 3 < len(reason) < 300
    assert reason.isprintable()


def test_all_broken_kinds_at_once_skip_the_round_and_never_raise() -> None:
    strategy = RobustStrategy("tq", f=0.3)
    contents = [*replies(*list(BROKEN.values())[:F]), *replies(*list(BROKEN.values())[:11])]
    arrays, metrics = run_round(strategy, pack(MODEL), contents)
    assert arrays is None
    assert metrics["robagg-skipped"] == 1


def test_a_broken_row_gives_what_the_rule_gives_without_it() -> None:
    """The contract: with n' >= 2f+1 sound rows the rule runs on them with the same f."""
    arrays, _ = run_round(RobustStrategy(ra.TM(f=F)), pack(MODEL), replies(BROKEN["strings"]))
    rows = [draw_update(MODEL, i) for i in range(1, N)]
    wanted = ra.TM(f=F)(rows)
    assert np.allclose(flatten(unpack(arrays)), flatten(wanted), atol=1e-6)


def test_as_many_broken_as_liars_are_borne_even_below_a_full_quorum() -> None:
    strategy = RobustStrategy(ra.TQ(f=5))
    arrays, _ = run_round(strategy, pack(MODEL), replies(*list(BROKEN.values())[:5]))
    assert arrays is not None
    arrays, metrics = run_round(strategy, pack(MODEL), replies(*list(BROKEN.values())[:6]))
    assert arrays is None
    assert metrics["robagg-skipped"] == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_a_claim_of_a_trillion_examples_buys_no_more_than_max_weight(weighted: bool) -> None:
    strategy = RobustStrategy(ra.Mean(f=F), weighted=weighted, max_weight=0.15)
    contents = [fill(draw_update(MODEL, i), **{"num-examples": 10}) for i in range(N)]
    contents[0] = fill({k: v + 1000 for k, v in MODEL.items()}, **{"num-examples": 10**12})
    arrays, _ = run_round(strategy, pack(MODEL), contents)
    moved = np.mean(flatten(unpack(arrays)) - flatten(MODEL))
    assert abs(moved / 1000 - (0.15 if weighted else 1 / N)) < 0.01


@pytest.mark.parametrize("rule", [ra.RFA(), ra.MCA(), ra.NNM() >> ra.Huber(), ra.Mean(), ra.TQ(), ra.CM()], ids=str)
@pytest.mark.parametrize("most", [0.1, 0.04])
def test_a_claim_gives_no_more_than_max_weight(rule: Rule, most: float) -> None:
    """A trillion examples count as many as would be that share; none counts nothing; as many as others have, alike."""
    n = 30
    rows = [draw_update(MODEL, i) for i in range(1, n)]
    rows.insert(0, {name: np.mean([row[name] for row in rows], axis=0) for name in MODEL})
    values = {}
    for claim in (0, 10, 10**12, 10 * (n - 1) * most / (1 - most)):
        strategy = RobustStrategy(rule, weighted=True, max_weight=most)
        reports = watch(strategy)
        contents = [fill(row, **{"num-examples": 10 if i else claim}) for i, row in enumerate(rows)]
        arrays, _ = run_round(strategy, pack(MODEL), contents)
        values[claim] = flatten(unpack(arrays))
        if claim == 0:
            assert reports[0].clients[0].weight == 0
    alone, _ = run_round(RobustStrategy(rule), pack(MODEL), contents)
    assert np.array_equal(values[10], flatten(unpack(alone)))
    assert np.allclose(values[10**12], list(values.values())[-1], atol=1e-6)


@pytest.mark.parametrize("count", [1, 7])
def test_claims_do_not_bring_far_replies_back(count: int) -> None:
    """Without an f no claim counts for more than two replies, so that seven of thirty hold less than half."""
    n = 30
    contents = [fill(draw_update(MODEL, i), **{"num-examples": 10}) for i in range(n)]
    far = {name: w + 1e6 for name, w in MODEL.items()}
    contents[:count] = [fill(far, **{"num-examples": 10**12})] * count
    strategy = RobustStrategy(ra.RFA(), weighted=True)
    reports = watch(strategy)
    run_round(strategy, pack(MODEL), contents)
    assert sum(client.weight for client in reports[0].clients[:count]) < 1e-3
    assert reports[0].f >= count


FROM_THE_ORIGIN = [ra.RFA(), ra.CC(tau=1.0, iterations=5), ra.Clipping(norm=2.0) >> ra.Mean()]


@pytest.mark.parametrize("rule", [*FROM_THE_ORIGIN, ra.Huber(), ra.NNM() >> ra.RFA(), ra.TQ(), ra.MCA()], ids=str)
@pytest.mark.parametrize("claim", [0, 10, 10**12])
@pytest.mark.parametrize("far", [1e160, 1e300, 1.7e308])
def test_no_claim_brings_back_a_row_beyond_float32(rule: Rule, claim: int, far: float) -> None:
    """A row so far off is drawn in before the rule sees it, so that its weight is not that of what was sent."""
    model = {name: w.astype(np.float64) for name, w in MODEL.items()}
    contents = [fill(draw_update(model, i), **{"num-examples": 10}) for i in range(30)]
    contents[0] = fill({name: w + far for name, w in model.items()}, **{"num-examples": claim})
    moved = []
    for weighted in (False, True):
        arrays, _ = run_round(RobustStrategy(rule, weighted=weighted), pack(model), contents)
        moved.append(np.abs(flatten(unpack(arrays)) - flatten(model)).max())
    assert moved[1] < 3 * moved[0]


@pytest.mark.parametrize("rule", [*FROM_THE_ORIGIN, ra.Huber(), ra.Mean()], ids=str)
def test_the_model_is_the_sum_of_replies_by_the_weights_that_are_told(rule: Rule) -> None:
    rows = [draw_update(MODEL, i) for i in range(12)]
    strategy = RobustStrategy(rule, weighted=True, max_weight=0.9)
    reports = watch(strategy)
    arrays, _ = run_round(strategy, pack(MODEL), [fill(row, **{"num-examples": 1 + i}) for i, row in enumerate(rows)])
    start, (report,) = flatten(MODEL), reports
    sizes = [1 + i for i in range(12)]
    median = flatten(ra.CM()(rows, weights=sizes, max_weight=0.9)) if isinstance(rule, ra.Huber) else start
    wanted = median + sum(
        client.weight * (flatten(row) - median) for client, row in zip(report.clients, rows, strict=True)
    )
    assert np.allclose(flatten(unpack(arrays)), wanted, atol=1e-5)
    assert report.clients[11].weight > report.clients[0].weight


def test_claims_of_the_largest_number_there_is_count_alike() -> None:
    strategy = RobustStrategy("mean", weighted=True, max_weight=0.9)
    reports, n = watch(strategy), 22  # of these shares the sum rounds to no number
    row, most = draw_update(MODEL, 0), np.finfo(np.float64).max
    run_round(strategy, pack(MODEL), [fill(row, **{"num-examples": float(most)})] * n)
    assert [client.weight for client in reports[0].clients] == pytest.approx([1 / n] * n)


def test_what_an_error_says_does_not_steer_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True

    def fail(records: list[RecordDict], key: str) -> MetricRecord:
        raise ValueError(f"unknown metric {[*records[0]['metrics']][-1]}")  # type: ignore[misc]

    contents = [fill(draw_update(MODEL, i), **{"\x1b[2Jevil": 1.0}) for i in range(N)]
    for observe in (False, True):
        strategy = RobustStrategy("cm", f=F, observe=observe, train_metrics_aggr_fn=fail)
        run_round(strategy, pack(MODEL), [*contents, Error(1, "x\x1b[2J\x1b[31mnode sound")])
    assert "unknown metric" in caplog.text and "node sound" in caplog.text
    assert "\x1b" not in caplog.text


def test_weights_follow_honest_claims() -> None:
    strategy = RobustStrategy(ra.Mean(f=F), weighted=True, max_weight=0.9)
    contents = [fill(draw_update(MODEL, i), **{"num-examples": 1 + i}) for i in range(N)]
    arrays, _ = run_round(strategy, pack(MODEL), contents)
    wanted = np.average([flatten(draw_update(MODEL, i)) for i in range(N)], axis=0, weights=np.arange(1, N + 1))
    assert np.allclose(flatten(unpack(arrays)), wanted, atol=1e-5)


def test_weighted_tq_keeps_the_rejected_out() -> None:
    strategy = RobustStrategy(ra.TQ(f=F), weighted=True)
    arrays, _ = run_round(strategy, pack(MODEL), replies(FAR["huge"], FAR["many-examples"]))
    assert distance_to_honest(arrays, 2) < 1.5 * SPREAD


def test_weighted_sizes_are_a_must() -> None:
    contents = replies()
    for content in contents[:2]:
        del content["metrics"]["num-examples"]
    told: list[str] = []
    strategy = RobustStrategy(ra.TQ(f=F), weighted=True, on_reject=lambda r, node, reason: told.append(reason))
    arrays, _ = run_round(strategy, pack(MODEL), contents)
    assert arrays is not None
    assert told == ["does not say its 'num-examples'"] * 2


@given(st.data())
def test_no_bytes_whatever_raise(data: st.DataObject) -> None:
    """A sound array's bytes with some of them changed, cut or repeated."""
    raw = bytearray(Array(np.zeros(7, np.float32)).data)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 12))] = data.draw(st.binary(max_size=12))
    shape = tuple(data.draw(st.lists(st.integers(-3, 2**70), max_size=3)))
    record = ArrayRecord({**pack(MODEL), "layer.bias": Array(data.draw(st.text()), shape, "numpy.ndarray", bytes(raw))})
    contents = [fill(record), *replies()[1:]]
    arrays, _ = run_round(RobustStrategy("tq", f=F), pack(MODEL), contents)
    assert distance_to_honest(arrays, 1) < 1.5 * SPREAD
