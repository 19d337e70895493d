"""Columns shared out over ranks give what one process gives, and every rank learns the same."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

import robagg as ra
from distributed import programs
from distributed.pool import Pool
from robagg import Mixer, Rule
from robagg._core.rule import stages

pytestmark = pytest.mark.filterwarnings("ignore:.* tolerates nobody with:RuntimeWarning")

WHOLE = {"bulyan", "meamed", "signguard"}
"""Rules that refuse rows of which other ranks have columns."""
RULES = [f"{name}(f=2)" for name, cls in stages.classes().items() if issubclass(cls, Rule) and name not in WHOLE]
MIXERS = [name for name, cls in stages.classes().items() if issubclass(cls, Mixer)]
CHAINS = [
    *(f"{mixer} >> {rule}" for mixer in MIXERS for rule in RULES),
    "clipping(norm=20.0) >> nnm >> tq(f=2)",
    "nnm >> tq(f=2, floor=False)",
    "bucketing >> nnm >> cm(f=1)",
    "nnm >> bucketing >> huber(f=1)",
    "cc(f=2, tau=9.0, iterations=5)",
]
EVERY = [*RULES, *CHAINS]
WEIGHTS = [3, 1, 2, 1, 1, 2, 1, 3, 1, 1, 2]


def draw(n: int = 11, d: int = 3001, far: int = 2) -> Tensor:
    x = torch.randn(n, d, generator=programs.seeded(7))
    x[:far] += 3.0
    return x


def joined(values: list[Any]) -> Tensor:
    return torch.cat(values)


def lies_near_tau(verdict: ra.Verdict) -> bool:
    """Whether some row is so near to tau that rounding may put it on either side."""
    if verdict.tau is None:
        return False
    return bool(((verdict.distances - verdict.tau).abs() <= 1e-4 * verdict.tau).any())


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_every_rule_and_chain_gives_what_one_process_gives(pool: Pool, weights: list[int] | None) -> None:
    x = draw()
    texts = [text for text in EVERY if weights is None or all(s.takes_weights for s in ra.parse(text).stages)]
    assert len(texts) > 40
    given = {} if weights is None else {"weights": weights}
    values = pool.run(programs.aggregate_all, texts, x, given, ranks=2)
    verdicts = pool.run(programs.explain_all, texts, x, given, ranks=2)
    skipped = 0
    for k, text in enumerate(texts):
        whole = ra.parse(text).explain(x, generator=programs.seeded(), **given)
        skipped += (near := lies_near_tau(whole))
        if near:
            continue
        size = float(x.abs().max())
        torch.testing.assert_close(joined([v[k] for v in values]), whole.value, rtol=1e-5, atol=1e-6 * size, msg=text)
        first, second = (verdict[k] for verdict in verdicts)
        torch.testing.assert_close(joined([first.value, second.value]), whole.value, rtol=1e-5, atol=1e-6 * size)
        assert str(first) == str(second), text
        assert first.reasons == second.reasons and torch.equal(first.weights, second.weights)
        assert torch.equal(first.rejected, whole.rejected) and first.f == whole.f and first.note == whole.note, text
        torch.testing.assert_close(first.weights, whole.weights, rtol=1e-4, atol=1e-5, msg=text)
        torch.testing.assert_close(first.distances, whole.distances, rtol=1e-4, atol=1e-3, msg=text)
    assert skipped <= len(texts) // 10


def test_a_rank_may_hold_no_column_at_all(pool: Pool) -> None:
    x = draw(7, 2)
    texts = ["tq(f=2)", "cm", "mean", "nnm >> tq(f=2)", "krum(f=2)", "scaledfilter(f=2)"]
    values = pool.run(programs.aggregate_all, texts, x, {})
    assert min(v[0].numel() for v in values) == 0
    for k, text in enumerate(texts):
        torch.testing.assert_close(joined([v[k] for v in values]), ra.parse(text)(x))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e30, 3e38, -3e38])
def test_a_row_broken_or_huge_on_one_rank_is_so_on_all(pool: Pool, bad: float) -> None:
    x = draw(9)
    x[3, -1] = bad  # the last rank's
    texts = [
        "tq(f=2)",
        "cm(f=2)",
        "tm(f=2)",
        "mean",
        "krum(f=2)",
        "nnm >> tq(f=2)",
        "nnm >> cm(f=2)",
        "rfa",
        "bucketing >> mean",
        "nnm >> scaledfilter(f=2)",
    ]
    values = pool.run(programs.aggregate_all, texts, x, {})
    verdicts = pool.run(programs.explain_all, texts, x, {})
    for k, text in enumerate(texts):
        whole = ra.parse(text).explain(x, generator=programs.seeded())
        value = joined([v[k] for v in values])
        assert torch.isfinite(value).all()
        torch.testing.assert_close(value, whole.value, rtol=1e-4, atol=1e-4, msg=text)
        for verdict in verdicts:
            assert verdict[k].reasons == verdicts[0][k].reasons
            assert torch.equal(verdict[k].rejected, whole.rejected)
        if bad != bad or abs(bad) == torch.inf:
            assert verdicts[0][k].reasons[3] == "not finite"


def test_numbers_at_the_end_of_float64_are_borne(pool: Pool) -> None:
    x = draw(9, 40).double()
    x[:, :3] *= 1e306  # the first rank's alone: the others must scale along
    texts = ["tq(f=2)", "cm(f=2)", "mean", "krum(f=2)", "scaledfilter(f=2)"]
    values = pool.run(programs.aggregate_all, texts, x, {})
    for k, text in enumerate(texts):
        value = joined([v[k] for v in values])
        torch.testing.assert_close(value, ra.parse(text)(x), rtol=1e-6, atol=1e290)


def test_a_row_of_another_structure_on_one_rank_is_broken_on_all_with_its_reason(pool: Pool) -> None:
    x = draw(9)
    for text in ("tq(f=2)", "cm(f=2)"):
        answers = pool.run(programs.aggregate_odd, text, x)
        reasons, table = answers[0][1:]
        assert reasons[2] == "lacks 'b'" and reasons[4] == "not finite"
        assert all(answer[1:] == (reasons, table) for answer in answers)
        kept = [i for i in range(9) if i not in (2, 4)]
        size = [len(answer[0]) for answer in answers]
        first = [sum(size[:k]) for k in range(4)]
        again = torch.cat([x, x[:, first]], dim=1)  # the biases count too
        whole = ra.parse(text)(again[kept])[: x.shape[1]]
        torch.testing.assert_close(joined([answer[0] for answer in answers]), whole, rtol=1e-5, atol=1e-5)


def test_where_one_rank_cannot_read_its_rows_none_waits_for_it(pool: Pool) -> None:
    said = pool.run(programs.fail_to_read, draw(5))
    assert said[1].startswith("TypeError: row 0 has its vector as str")
    for text in (said[0], *said[2:]):
        assert re.match("QuorumError: .*row 0: row 0 has its vector as str", text)


def test_every_rank_draws_what_the_first_would(pool: Pool) -> None:
    x = draw(8)
    answers = pool.run(programs.draw_apart, x)
    rule = ra.parse("bucketing(s=2) >> tq(f=1)")
    torch.testing.assert_close(
        joined([a[0][0] for a in answers]), rule(x, generator=programs.seeded(0)), rtol=1e-5, atol=1e-5
    )
    torch.manual_seed(100)
    torch.testing.assert_close(joined([a[0][1] for a in answers]), rule(x), rtol=1e-5, atol=1e-5)
    assert torch.equal(answers[0][1], torch.rand(3)), "the first rank's own draws go on from there"
    for rank in (1, 2, 3):
        torch.manual_seed(100 + rank)
        assert torch.equal(answers[rank][1], torch.rand(3)), "the others' as if nothing had been drawn"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tq(f=2)", [("all_reduce", 83)]),
        ("krum(f=2)", [("all_reduce", 83)]),
        ("rfa", [("all_reduce", 102)]),
        ("scaledfilter(f=2)", [("all_reduce", 83), ("all_reduce", 1), ("all_reduce", 83)]),
        ("nnm >> krum(f=2)", [("all_reduce", 83)]),
        ("nnm >> tq(f=2)", [("all_reduce", 83), ("all_reduce", 84)]),
        ("cm", [("all_reduce", 1)]),
        ("tm(f=2)", [("all_reduce", 1)]),
        ("mean", [("all_reduce", 1)]),
    ],
)
def test_ranks_send_no_more_than_the_gram_matrix(pool: Pool, text: str, wanted: list[tuple[str, int]]) -> None:
    """81 numbers of 9 rows, the spread V and one more; sorted rules: whether a row is broken."""
    assert pool.run(programs.list_messages, text, draw(9))[0] == wanted


def test_a_rule_that_remembers_starts_from_its_last_columns(pool: Pool) -> None:
    x = draw(9)
    rule = ra.parse("cc(f=2, tau=9.0)")
    verdict, state = rule.step(x)
    verdict, _ = rule.step(x, state)
    value = joined(pool.run(programs.step_twice, "cc(f=2, tau=9.0)", x))
    torch.testing.assert_close(value, verdict.value, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["tq(f=2)", "nnm >> cm(f=2)", "krum(f=2)"])
def test_state_dicts_of_dtensors_count_every_number_once(pool: Pool, text: str) -> None:
    """What is replicated, DTensor or plain, lies on every rank."""
    g = programs.seeded(3)
    rows = [
        {
            "w": torch.randn(7, 30, generator=g) + (2.0 if k < 2 else 0.0),
            "v": torch.randn(4, 6, generator=g),
            "r": torch.randn(50, generator=g),
            "mean": torch.randn(40, generator=g),
            "count": torch.tensor(k),
        }
        for k in range(9)
    ]
    rest = [row for k, row in enumerate(rows) if k != 5]
    whole = ra.parse(text).explain(rest)
    answers = pool.run(programs.aggregate_dtensors, text, rows)
    for value, said in answers:
        assert said == answers[0][1]
        assert said[5] == "has 'w' over the ranks in another way than most"
        for name, x in value.items():
            torch.testing.assert_close(x, whole.value[name], rtol=1e-5, atol=1e-5)
    weights = [float(line.split()[0]) for line in answers[0][1][9:]]
    torch.testing.assert_close(torch.tensor(weights[:5] + weights[6:]).double(), whole.weights, rtol=1e-3, atol=1e-4)
    distances = [float(line.split()[1]) for line in answers[0][1][9:]]
    torch.testing.assert_close(
        torch.tensor(distances[:5] + distances[6:]).double(), whole.distances, rtol=1e-2, atol=1e-4
    )


def test_a_torch_without_distributed_has_all_the_rest() -> None:
    code = (
        "import torch.distributed\ntorch.distributed.is_available = lambda: False\n"
        "import robagg\nprint(robagg.CM(f=1)(torch.tensor([[1.0], [2.0], [9.0]])).item())\nimport robagg.distributed"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["2.0"]
    assert done.stderr.strip().endswith("must have a torch with torch.distributed, got one that is built without it")


def test_a_rule_must_be_one() -> None:
    from robagg.distributed import HookState, Sharded

    for make in (Sharded, HookState):
        with pytest.raises(TypeError, match="rule must be a robagg rule or chain, got 'tq'"):
            make("tq")  # type: ignore[operator]
