"""The paper's small computations: Figure 1, Example 1, Theorem 2."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from robagg.paper.__main__ import main
from robagg.paper.experiments import EXPERIMENTS, theory
from robagg.paper.experiments.theory import FIG1, follow
from robagg.rules import TQ, Huber


def test_huber_ends_off_the_honest_mean_from_both_starts_and_tq_on_it() -> None:
    done = theory.compute_fig1(8)
    assert [found.holds for found in done.findings] == [True] * 4
    shares = {(line[0], line[1]): line[2] for line in done.lines}
    assert shares["TQ", "the median"] == "100.0 %"
    assert shares["Huber", "the median"] == shares["Huber", "the mean of all points"] == "0.0 %"


def test_the_draws_are_as_the_paper_says() -> None:
    x = theory.draw_plane(3)
    assert x.shape == (19, 2)
    assert float((x[10:].mean(0) - 10).abs().max()) < 0.5 and float(x[:10].abs().max()) < 4
    assert torch.equal(x, theory.draw_plane(3)) and not torch.equal(x, theory.draw_plane(4))


@pytest.mark.parametrize("rule", [TQ, Huber])
def test_a_followed_path_is_the_rules_own(rule: type[TQ] | type[Huber]) -> None:
    x = theory.draw_plane(0)
    path = follow(rule(f=9), x, 9, iterations=10)
    for k in (1, 4, len(path) - 1):
        torch.testing.assert_close(path[k], rule(f=9, iterations=k)(x))


def test_one_step_of_huber_is_delta_tau_s_and_of_tq_nothing() -> None:
    done = theory.compute_example1(1)
    assert done.findings[0].holds
    assert len(done.lines) == 4


def test_hubers_bias_is_theorem_2s_within_the_condition_and_tq_has_none() -> None:
    done = theory.compute_theorem2(1)
    assert done.findings[0].holds
    for line in done.lines:
        if line[5] == "yes":
            assert float(line[3]) == pytest.approx(float(line[4]), rel=1e-3) and float(line[7]) == 0.0


@pytest.mark.slow
def test_figure_1_over_five_hundred_draws() -> None:
    done = theory.compute_fig1(500)
    assert all(found.holds for found in done.findings)


def test_a_dry_run_computes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(EXPERIMENTS, "fig1", replace(FIG1, compute=pytest.fail))
    assert main(["fig1", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("no runs: fig1 trains nothing")
