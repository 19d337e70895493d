"""The Gram matrix in the journal: what a rule by distances would have seen is there again, to float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import robagg as ra
from robagg.server import RobustServer, RoundReport, read_journal

RULES = [ra.TQ(f=2), ra.Huber(f=2), ra.MCA(f=2), ra.Krum(f=2), ra.RFA(f=2)]


def run(path: Path, rule: Any, rows: torch.Tensor, start: float = 0.0, **options: Any) -> RoundReport:
    """One round whose rows lie about a model far from the origin, as it comes back from the journal."""
    model = {"a": torch.full((30,), start, dtype=rows.dtype), "b": torch.full((5, 2), start, dtype=rows.dtype)}
    replies = {
        f"site-{i}": {"a": model["a"] + row[:30], "b": model["b"] + row[30:].view(5, 2)} for i, row in enumerate(rows)
    }
    RobustServer(rule, journal=path, **options).aggregate(1, replies, model=model)
    return read_journal(path).rounds[-1]


def compute_gram(rows: torch.Tensor) -> torch.Tensor:
    points = torch.cat([rows, torch.zeros(1, rows.shape[1], dtype=rows.dtype)]).double()
    centred = points - rows.double().quantile(0.5, dim=0)
    return centred @ centred.T


@pytest.mark.parametrize("rule", ["tq", "cm", "rfa", "nnm >> krum"])
def test_it_is_that_of_the_rows_and_the_model_about_the_median(tmp_path: Path, rule: str) -> None:
    rows = torch.randn(9, 40)
    report = run(tmp_path / "rounds.jsonl", ra.parse(rule, f=2), rows, start=7.0)
    assert report.gram is not None and report.gram.clients == tuple(f"site-{i}" for i in range(9))
    exact = compute_gram(rows)
    lengths = exact.diagonal().sqrt()
    assert ((report.gram.matrix() - exact).abs() < 1e-5 * lengths[:, None] * lengths).all()
    mad = (rows - rows.quantile(0.5, dim=0)).abs().quantile(0.5, dim=0)
    assert report.gram.spread == pytest.approx(float(mad.square().sum()), rel=1e-4)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_decides_by_it_as_it_did_on_the_rows(tmp_path: Path, rule: ra.GramRule) -> None:
    rows = torch.randn(9, 40)
    rows[8] += 30
    gram = run(tmp_path / "rounds.jsonl", "mean", rows).gram
    assert gram is not None
    spread = torch.tensor(gram.spread, dtype=torch.float64)
    weights = rule.weights(ra.Sketch(gram.matrix(), spread, 9, 2, ("origin",))).coefficients[:9]
    assert torch.allclose(weights, rule.explain(rows).weights, atol=1e-4)


@pytest.mark.parametrize(("far", "dtype"), [(1e30, torch.float32), (1e200, torch.float64), (3e38, torch.float32)])
def test_one_far_reply_costs_the_others_no_digit(tmp_path: Path, far: float, dtype: torch.dtype) -> None:
    rows = torch.randn(9, 40, dtype=dtype)
    rows[8] = far
    gram = run(tmp_path / "rounds.jsonl", ra.TQ(f=2), rows).gram
    assert gram is not None
    matrix = gram.matrix()
    assert torch.isfinite(matrix).all()
    exact = compute_gram(rows)[:8, :8]
    assert torch.allclose(matrix[:8, :8], exact, rtol=1e-4, atol=1e-4 * float(exact.diagonal().max()))
    assert gram.lengths[8] > 1e30


def test_broken_replies_have_no_row_and_many_clients_no_matrix(tmp_path: Path) -> None:
    rows = torch.randn(9, 40)
    rows[3, 5] = torch.nan
    gram = run(tmp_path / "rounds.jsonl", ra.TQ(f=2), rows).gram
    assert gram is not None and "site-3" not in gram.clients and len(gram.lengths) == 9
    many = run(tmp_path / "many.jsonl", ra.CM(), torch.randn(201, 40)).gram
    assert many is not None and many.note == "n=201 replies, and it is kept for at most 200"
    with pytest.raises(ValueError, match="the round has no Gram matrix"):
        many.matrix()
    assert run(tmp_path / "none.jsonl", ra.CM(), torch.randn(5, 40), gram=False).gram is None


def test_digests_are_those_of_the_arrays_bytes(tmp_path: Path) -> None:
    import hashlib

    rows = torch.randn(5, 40)
    report = run(tmp_path / "rounds.jsonl", ra.CM(), rows, digests=True)
    assert report.clients[2].digest == hashlib.sha256(rows[2].numpy().tobytes()).hexdigest()
    again = run(tmp_path / "again.jsonl", ra.CM(), rows + torch.eye(5, 40), digests=True)
    assert all(a.digest != b.digest for a, b in zip(report.clients, again.clients, strict=True))
    assert np.unique([client.digest for client in report.clients]).size == 5
