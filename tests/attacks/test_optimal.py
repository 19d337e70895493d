"""The optimal attacker sends what moves the rule it faces most, of all it tries; the run says which rule that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from robagg import F, GramRule, Rule, Sketch, Weights, parse, train
from robagg.attacks import ALIE, IPM, Optimal, Setup, View
from robagg.attacks import parse as parse_attack
from robagg.attacks.optimal import DISTANCES, SCALES
from robagg.attacks.trial import Span, map_over, needs_distances_only, try_rows
from robagg.attacks.trial import _try_by_distances as by_distances
from robagg.attacks.trial import _try_on_rows as on_rows
from robagg.lab import Run, execute

BY_DISTANCES = [
    "krum",
    "multikrum",
    "caf",
    "spectralfilter",
    "rfa",
    "nnm >> krum",
    "nnm >> caf",
    "clipping(norm=2.0) >> multikrum",
    "clipping(norm=3.0) >> nnm >> rfa",
]
ON_ROWS = ["tq", "huber", "mca", "cm", "tm", "mean", "cc", "nnm >> tq", "bucketing >> krum"]
N, H, D = 13, 9, 40


def draw(number: int = 0, h: int = H) -> Tensor:
    return torch.randn(h, D, dtype=torch.float64, generator=torch.Generator().manual_seed(number)) * 0.5 + 0.2


def look(rule: Rule | None, number: int = 0, f: int = N - H) -> View:
    last = torch.zeros(D, dtype=torch.float64) if rule is not None and rule.core.remembers else None
    return View(draw(number), None, H + f, f, torch.Generator().manual_seed(5), rule=rule, last=last)


def begin(attack: Optimal, f: int = N - H) -> dict[str, Tensor]:
    return attack.start(Setup(H + f, f, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3)))


def harm(rule: Rule, view: View, sent: Tensor, aim: str) -> float:
    value = rule(torch.cat([view.honest, sent]))
    mean = view.honest.mean(0)
    return float((value - mean).norm()) if aim == "far" else -float(value @ (mean.sign() if aim == "signs" else mean))


@pytest.mark.parametrize("text", BY_DISTANCES)
def test_what_distances_say_of_a_rule_is_what_it_does_with_the_rows(text: str) -> None:
    rule = parse(text, f=4)
    assert needs_distances_only(rule)
    view = look(rule)
    span = Span.of(view, view.honest.std(0), view.mean.sign())
    tries = torch.randn(6, 4, H + 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for quick, slow in zip(by_distances(rule, span, tries), on_rows(view, rule, span, tries), strict=True):
        torch.testing.assert_close(quick, slow, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("text", ON_ROWS)
def test_a_rule_that_needs_more_than_distances_is_tried_on_the_rows(text: str) -> None:
    assert not needs_distances_only(parse(text, f=4))


@pytest.mark.parametrize("text", [*BY_DISTANCES, "tq", "cm", "mean", "nnm >> tq"])
@pytest.mark.parametrize("aim", ["far", "against", "signs"])
def test_it_does_at_least_as_much_harm_as_each_strength_of_ipm_and_alie(text: str, aim: str) -> None:
    rule = parse(text, f=4)
    for number in range(3):
        view = look(rule, number)
        attack = Optimal(aim=aim)
        state = begin(attack)
        done = harm(rule, view, attack.craft(view, state)[0], aim)
        assert done > 0 or aim != "far"
        for jitter in (0.0, 0.5):
            for rival in (*(IPM(c0, jitter=jitter) for c0 in SCALES), *(ALIE(z, jitter=jitter) for z in DISTANCES)):
                sent, _ = rival.craft(view, {"mix": state["mix"]})
                assert done >= harm(rule, view, sent, aim) - 1e-6 * abs(done), rival


@pytest.mark.parametrize("family", ["ipm", "alie", "mean", "signs", "main"])
def test_one_family_and_jitter_are_tried_alone(family: str) -> None:
    view, attack = look(parse("krum", f=4)), Optimal(jitter=0.0, family=family)
    sent, _ = attack.craft(view, begin(attack))
    assert len(attack.list_tries()) == 10
    away, mean = sent[0] - view.mean, view.mean
    directions = {"ipm": mean, "alie": view.honest.std(0), "mean": mean, "signs": mean.sign()}
    directions["main"] = torch.linalg.svd(view.away)[2][0]
    assert float(torch.cosine_similarity(away, directions[family], dim=0).abs()) == pytest.approx(1)
    assert float(away @ mean) < 0
    size = {"ipm": mean.norm(), "alie": directions["alie"].norm()}.get(family, view.spread)
    strengths = [1 + c0 for c0 in SCALES] if family == "ipm" else list(DISTANCES)
    assert min(abs(float(away.norm() / size) - c) for c in strengths) < 1e-9
    torch.testing.assert_close(sent, sent[:1].expand_as(sent))


def test_aim_either_goes_against_the_mean_where_a_try_turns_the_step_round_and_far_elsewhere() -> None:
    for text, number in [("mean", 0), ("krum", 1), ("caf", 2), ("tq", 3)]:
        rule = parse(text, f=4)
        view = look(rule, number)
        sent = {aim: Optimal(aim=aim).craft(view, begin(Optimal()))[0] for aim in ("far", "against", "either")}
        turned = -harm(rule, view, sent["against"], "against") < 0
        assert torch.equal(sent["either"], sent["against" if turned else "far"])
    assert -harm(parse("mean"), look(parse("mean")), sent["either"], "against") != 0


def test_without_a_rule_to_try_on_it_says_so() -> None:
    with pytest.raises(ValueError, match="rule must be the rule that the rows will meet, got None"):
        Optimal().craft(look(None), begin(Optimal()))


def test_it_has_no_try_for_rows_that_come_out_as_nothing() -> None:
    """A try that overflows is NaN in harm, and another is sent."""
    view = View(draw().float() * 1e17, None, N, N - H, rule=parse("tq", f=4))
    attack = Optimal()
    state = attack.start(Setup(N, N - H, D, generator=torch.Generator().manual_seed(3)))
    assert attack.craft(view, state)[0].isfinite().all()


@dataclass(frozen=True)
class Stubborn(GramRule):
    """The row of the largest diagonal; it cannot be mapped, since it asks for a number."""

    f: F = None

    def weights(self, sketch: Sketch) -> Weights:
        share = torch.zeros(sketch.n, dtype=torch.float64)
        share[int(sketch.gram.diagonal()[: sketch.n].argmax())] = 1.0
        return Weights(sketch.on_rows(share))


@dataclass(frozen=True)
class Half(GramRule):
    """A rule whose weights sum to one half; the rest is the median's."""

    f: F = None
    needs_median: ClassVar[bool] = True

    def weights(self, sketch: Sketch) -> Weights:
        return Weights(sketch.on_rows(torch.full_like(sketch.gram[0, : sketch.n], 0.5 / sketch.n)))


@pytest.mark.parametrize("rule", [Stubborn(f=4), Half(f=4)], ids=str)
def test_rules_of_ones_own_are_tried_as_they_are(rule: Rule) -> None:
    view, attack = look(rule), Optimal(aim="far")
    sent, _ = attack.craft(view, begin(attack))
    state = begin(attack)
    rivals = [ALIE(z).craft(view, state)[0] for z in DISTANCES]
    assert harm(rule, view, sent, "far") >= max(harm(rule, view, rival, "far") for rival in rivals) - 1e-9


def test_what_cannot_be_mapped_is_done_in_turn() -> None:
    batch = torch.arange(6.0).view(3, 2)
    doubled = map_over(lambda item: 2 * item, batch)
    assert torch.equal(doubled, 2 * batch)
    assert torch.equal(map_over(lambda item: item * float(item[0]), batch), batch * batch[:, :1])


def test_rules_that_remember_are_tried_from_their_last_aggregate() -> None:
    rule = parse("cc(tau=0.5)", f=4)
    view = look(rule)
    span = Span.of(view, view.honest.std(0))
    tries = torch.zeros(1, 4, H + 2, dtype=torch.float64)
    stack = torch.cat([view.honest, view.mean.expand(4, D)])
    for last in (torch.zeros(D, dtype=torch.float64), draw(9)[0]):
        far, _ = try_rows(View(view.honest, None, N, 4, rule=rule, last=last), rule, span, tries)
        value = rule.step(stack, last)[0].value
        assert float(far[0]) == pytest.approx(float((value - view.mean).square().sum()))


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("rule", ["krum", "nnm >> tq", "cc"])
def test_a_run_tells_it_the_rule(rule: str, share: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(120, 5)
    clients = [(x[i::12], (x[i::12].sum(1) > 0).long()) for i in range(12)]
    text = "optimal(jitter=0.5)"
    result = train(nn.Linear(5, 2), clients, rule, text, f=2, test=(x, (x.sum(1) > 0).long()), rounds=5, share=share)
    assert result.accuracy is not None
    assert result.rounds == 5


def test_it_runs_in_the_lab_alike_each_time() -> None:
    run = Run(rule="multikrum", attack="optimal", f=4, n=12, settings={"rounds": 8})
    first, again = execute(run, device="cpu"), execute(run, device="cpu")
    assert first["status"] == "ok", first
    assert first["curve"] == again["curve"]
    assert first["trace"]["loss"] == again["trace"]["loss"]


def test_beside_others_it_tries_as_if_all_did_alike() -> None:
    attack = parse_attack("mixed(attacks='optimal+lf')")
    rule = parse("krum", f=4)
    view = look(rule)
    own = torch.zeros(4, D, dtype=torch.float64)
    state = attack.start(Setup(N, 4, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3)))
    sent, _ = attack.craft(View(view.honest, own, N, 4, rule=rule), state)
    alone, _ = Optimal().craft(view, {key[2:]: value for key, value in state.items() if key.startswith("0.")})
    assert torch.equal(sent[[0, 2]], alone[:2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("text", [*BY_DISTANCES, *ON_ROWS])
def test_captured_against_a_rule_it_sends_what_it_sends_without_a_graph(text: str) -> None:
    rule = parse(text, f=4)
    honest, generator = torch.randn(H, 1000, device="cuda") * 0.5 + 0.2, torch.Generator("cuda")
    last = torch.zeros(1000, device="cuda") if rule.core.remembers else None
    attack = Optimal(jitter=0.5)
    state = attack.start(Setup(N, 4, 1000, "cuda", generator=generator.manual_seed(0)))

    def craft() -> Tensor:
        return attack.craft(View(honest, None, N, 4, generator, rule=rule, last=last), state)[0]

    for _ in range(2):  # kernels are compiled before
        generator.manual_seed(1)
        eager = craft()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = craft()
    generator.manual_seed(1)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(captured, eager)
