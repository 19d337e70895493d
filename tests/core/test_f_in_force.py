"""The f in force: in the verdict and its table, and a warning where nobody is tolerated though somebody was to be."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import pytest
import torch

import robagg as ra
from robagg._core.aggregate import Request, aggregate
from robagg._core.stack import read

SILENT = "ignore:.* tolerates nobody with:RuntimeWarning"


def draw_rows(n: int, d: int = 10, broken: int = 0) -> torch.Tensor:
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
    x[n - broken :, 0] = math.nan
    return x


@pytest.mark.parametrize("text", ["nnm >> tq", "tq", "cm", "krum", "huber"])
def test_a_share_of_few_rows_protects_from_one_liar(text: str) -> None:
    x = draw_rows(4)
    x[3] = 1e6
    assert bool((ra.parse(text, f=0.2)(x).abs() < 10).all())
    assert ra.parse(text, f=0.2).explain(x).f == 1


@pytest.mark.filterwarnings(SILENT)
@pytest.mark.parametrize(
    ("text", "f", "n", "broken", "in_force", "line"),
    [
        ("tq", 0.2, 4, 0, 1, ""),
        ("tq", 0.3, 20, 0, 6, ""),
        ("tq", 0.28, 25, 0, 7, ""),
        ("tq", 6, 20, 0, 6, ""),
        ("tq", None, 9, 0, 4, ""),
        ("tq", 0, 9, 0, 0, ""),
        ("tq", 2, 7, 1, 2, ""),
        ("tq", 2, 5, 1, 1, "f in force: 1, asked: 2"),
        ("krum", 0.4, 5, 2, 1, "f in force: 1, asked: 0.4"),
        ("cm", None, 9, 1, 3, "f in force: 3, asked: the most that n allows"),
        ("bucketing >> tq", 4, 10, 0, 2, "f in force: 2, asked: 4"),
        ("nnm >> tq", 0.2, 20, 0, 4, ""),
        ("nnm >> mean", 2, 9, 0, 0, ""),
        ("mean", 2, 9, 0, 0, ""),
        ("mean", None, 1, 0, 0, ""),
        ("tq", 1, 3, 1, 0, "tq tolerates nobody with 2 sound rows of 3"),
    ],
)
def test_the_verdict_tells_the_f_in_force_and_its_table_where_it_is_not_what_was_asked(
    text: str, f: ra.F, n: int, broken: int, in_force: int, line: str
) -> None:
    verdict = ra.parse(text, f=f).explain(draw_rows(n, broken=broken))
    assert (verdict.f, verdict.f_asked) == (in_force, 0 if text.endswith("mean") else f)
    told = [word for word in str(verdict).splitlines() if "in force" in word]
    assert len(told) == bool(line) and all(word.startswith(line) for word in told)


UNPROTECTED: list[tuple[str, ra.F, int, int, str]] = [
    ("tq", 0.2, 2, 0, "tq tolerates nobody with n=2 rows: f in force is 0 where f=0.2 was given"),
    ("tq", None, 1, 0, "tq tolerates nobody with n=1 rows: f in force is 0 where f=None"),
    ("cm", None, 2, 0, "cm tolerates nobody with n=2 rows"),
    ("nnm >> tq", 0.2, 2, 0, "nnm in nnm(f=0.2) >> tq(f=0.2) tolerates nobody with n=2 rows"),
    ("nnm >> mean", 0.2, 2, 0, "nnm in nnm(f=0.2) >> mean(f=0.2) tolerates nobody with n=2 rows"),
    ("bucketing >> tq", 1, 4, 0, "tq in bucketing >> tq(f=1) tolerates nobody with n=4 rows"),
    ("krum", 1, 3, 1, "krum tolerates nobody with 2 sound rows of 3: f in force is 0 where f=1 was given"),
]


@pytest.mark.parametrize("call", ["__call__", "explain", "step"])
@pytest.mark.parametrize(("text", "f", "n", "broken", "words"), UNPROTECTED)
def test_who_was_to_tolerate_somebody_and_tolerates_nobody_warns_each_time(
    call: str, text: str, f: ra.F, n: int, broken: int, words: str
) -> None:
    rule, x = ra.parse(text, f=f), draw_rows(n, broken=broken)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=re.escape(words)) as caught:
            result = getattr(rule, call)(x)
        assert [warning.filename for warning in caught] == [__file__]
        verdict = result[0] if call == "step" else result
        assert call == "__call__" or str(caught[0].message) == verdict.unprotected


@pytest.mark.parametrize(
    ("rule", "n"),
    [
        (ra.Mean(), 1),
        (ra.Mean(f=0.2), 2),
        (ra.Bucketing() >> ra.Mean(), 2),
        (ra.TQ(f=0), 2),
        (ra.TQ(f=0.0), 3),
        (ra.TQ(f=1), 3),
        (ra.NNM(f=0) >> ra.TQ(f=0), 1),
    ],
)
def test_who_was_to_tolerate_nobody_does_not_warn(rule: ra.Rule, n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule(draw_rows(n))
        assert rule.explain(draw_rows(n)).unprotected == ""


def test_a_round_that_may_not_ask_the_device_does_not_warn() -> None:
    request: Any = Request(alarm=torch.zeros((), dtype=torch.bool))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate(ra.TQ(), read(draw_rows(2)), request)
