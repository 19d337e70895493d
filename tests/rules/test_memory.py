"""FoolsGold's memory: the sums of what each client has sent, handed on in the open."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import oracle
import robagg as ra
from robagg.training.snapshot import restore, save


@dataclass(frozen=True)
class Halving(ra.GramRule):
    """Takes the first two rows' weight, and gives no scale."""

    f: int | None = None

    def weights(self, sketch: ra.Sketch) -> ra.Weights:
        left = torch.tensor([0, 0.25, 1, 1, 1, 1], dtype=torch.float64)
        return ra.Weights(sketch.on_rows(left / left.sum()), left=left)


def draw(n: int = 6, d: int = 4, number: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(number), dtype=torch.float64)


@pytest.mark.parametrize("number", range(4))
def test_the_weights_are_those_of_the_sums(number: int) -> None:
    rule, state, past = ra.FoolsGold(), None, torch.zeros(6, 4, dtype=torch.float64)
    for t in range(4):
        x = draw(number=10 * number + t)
        past = past + x
        verdict, state = rule.step(x, state)
        wanted, _ = oracle.foolsgold(x.tolist(), past.tolist())
        assert torch.allclose(verdict.value, torch.tensor(wanted, dtype=torch.float64))
        assert torch.allclose(state, past)


def test_a_chain_mixes_the_sums_as_the_rows() -> None:
    rule = ra.Clipping(norm=1.0) >> ra.NNM(f=2) >> ra.FoolsGold()
    first, second = draw(), draw(number=1)
    _, state = rule.step(first, None)
    verdict, _ = rule.step(second, state)
    rows = oracle.clipping(second.tolist(), 1.0)
    scales = [math.hypot(*a) / math.hypot(*b) for a, b in zip(rows, second.tolist(), strict=True)]
    past = [[scale * v for v in row] for scale, row in zip(scales, (first + second).tolist(), strict=True)]
    nearest = oracle.neighbours(rows, 2)
    mixed, mixed_past = ([oracle.mean([part[j] for j in near]) for near in nearest] for part in (rows, past))
    wanted, _ = oracle.foolsgold(mixed, mixed_past)
    assert torch.allclose(verdict.value, torch.tensor(wanted, dtype=torch.float64))


def test_state_dicts_arrays_and_half_precision_remember_too() -> None:
    rule, x, y = ra.FoolsGold(), draw(), draw(number=1)
    wanted, sums = rule.step(y, rule.step(x)[1])
    trees = [[{"a": row[:1], "b": [row[1:]], "count": torch.tensor(3)} for row in rows] for rows in (x, y)]
    verdict, state = rule.step(trees[1], rule.step(trees[0])[1])
    assert torch.allclose(torch.cat([verdict.value["a"], verdict.value["b"][0]]), wanted.value)
    assert torch.allclose(state, sums)
    array, state = rule.step(y.numpy(), rule.step(x.numpy())[1])
    assert torch.allclose(torch.from_numpy(array.value), wanted.value) and torch.allclose(state, sums)
    half, state = rule.step(y.half(), rule.step(x.half())[1])
    assert (half.value.dtype, state.dtype) == (torch.float16, torch.float32)
    assert torch.allclose(half.value.double(), wanted.value, atol=0.02)


def test_a_broken_row_adds_nothing_and_keeps_its_past() -> None:
    rule, x, y = ra.FoolsGold(f=1), draw(), draw(number=1)
    _, state = rule.step(x)
    y[2, 1] = math.nan
    verdict, after = rule.step(y, state)
    assert torch.equal(after[2], state[2])
    others = [0, 1, 3, 4, 5]
    wanted, _ = oracle.foolsgold(y[others].tolist(), (state + y)[others].tolist())
    assert torch.allclose(verdict.value, torch.tensor(wanted, dtype=torch.float64))
    assert torch.allclose(after[others], (state + y)[others])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_rows_stay_finite_however_often_they_come(dtype: torch.dtype) -> None:
    rule, state = ra.FoolsGold(f=1), None
    x = draw().to(dtype)
    x[5] = torch.finfo(dtype).max
    for _ in range(4):
        verdict, state = rule.step(x, state)
        assert verdict.value.isfinite().all() and state.isfinite().all()


def test_clones_lose_their_weight_over_the_rounds_though_each_round_they_differ() -> None:
    """Rows of a round are noisy; sums are not."""
    rule, state = ra.FoolsGold(), None
    ways = torch.linalg.qr(draw(9, 9))[0]
    for t in range(40):
        x = torch.cat([ways[:6], ways[6].expand(3, -1)]) + 0.6 * draw(9, 9, t)
        alone = rule.explain(x)
        verdict, state = rule.step(x, state)
    assert float(verdict.weights[6:].sum()) < 0.02 < float(alone.weights[6:].sum())
    assert verdict.reasons[6].startswith("points where another client does")


class Live(TorchDispatchMode):
    """Counts the bytes of the tensors that are alive, of those made since."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        for x in tree_leaves(made):
            if isinstance(x, Tensor) and (storage := x.untyped_storage()).data_ptr() not in given:
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
                weakref.finalize(storage, self.free, storage.nbytes())
        return made

    def free(self, size: int) -> None:
        self.live -= size


@pytest.mark.parametrize(("state", "times"), [(None, 1.5), (torch.zeros(20, 20_000), 3)])
def test_the_sums_take_one_copy_in_float64_and_their_successor(state: Tensor | None, times: float) -> None:
    x = torch.randn(20, 20_000, generator=torch.Generator().manual_seed(0))
    with Live() as counter:
        ra.FoolsGold().step(x, state)
    assert counter.peak < times * x.nbytes
    assert state is None or not state.any()


def test_sums_that_ask_for_gradients_are_taken_without() -> None:
    x = draw().requires_grad_()
    verdict, state = ra.FoolsGold().step(x, torch.ones(6, 4, dtype=torch.float64, requires_grad=True))
    assert torch.equal(state, x.detach() + 1)
    assert not verdict.value.requires_grad and not state.requires_grad


def test_a_filter_of_a_users_own_without_a_scale_says_what_is_kept() -> None:
    assert Halving().explain(draw()).reasons == ("cut", "25% of its weight left", "", "", "", "")


@pytest.mark.parametrize("front", ["", "nnm(f=1) >> "])
def test_ctma_gives_its_base_the_sums(front: str) -> None:
    rule, base = ra.parse(f"{front}ctma(f=2, base='foolsgold')"), ra.parse(f"{front}foolsgold")
    x, state = draw(), 3 * draw(number=4)
    verdict, after = rule.step(x, state)
    assert torch.equal(after, state + x)
    rows = ra.NNM(f=1)(x) if front else x
    centre = base.step(x, state)[0].value
    nearest = (rows - centre).norm(dim=1).argsort()[:4]
    torch.testing.assert_close(verdict.value, rows[nearest].mean(0))
    assert not torch.allclose(verdict.value, rule(x))


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_sums_that_are_no_real_numbers_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=f"the state must be the sums of 6 rows, in floating point, got {dtype}"):
        ra.FoolsGold().step(draw(), torch.zeros(6, 4, dtype=dtype))


@pytest.mark.parametrize("state", [torch.zeros(5, 4), torch.zeros(6, 3), [0.0] * 6])
def test_sums_of_other_rows_are_refused(state: object) -> None:
    with pytest.raises(ValueError, match=r"the state must be the sums of 6 rows, a tensor \(6, 4\), got"):
        ra.FoolsGold().step(draw(), state)


def test_sums_that_are_not_finite_are_refused() -> None:
    state = torch.zeros(6, 4, dtype=torch.float64)
    state[0, 0] = math.nan
    with pytest.raises(ValueError, match="the state must be finite, got NaN or Inf in it"):
        ra.FoolsGold().step(draw(), state)


def test_a_training_in_half_precision_sums_in_float32() -> None:
    """In bfloat16, 2 + 1/128 is 2 again."""
    x, y = draw(60, 3).bfloat16(), torch.arange(60) % 2
    clients = [(x[i::6], y[i::6]) for i in range(6)]
    settings = ra.training.Settings(rounds=9, batch=4, momentum=0.0, rate=0.5)
    kind = {"f": 2, "loss": nn.functional.cross_entropy, "classes": 2, "settings": settings}
    federation = ra.training.Federation(
        nn.Linear(3, 2).bfloat16(), clients, ra.FoolsGold(), ra.attacks.SignFlip(), **kind
    )
    sums = torch.zeros(6, federation.flat.d)
    for t in range(9):
        federation.round(t, verdict=False)
        sums += federation.sent
    assert federation.sent.dtype == torch.bfloat16
    assert torch.equal(federation.sums, sums)


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_a_training_remembers_each_client_also_where_some_are_asked(share: float) -> None:
    """The trained model is that of a loop which calls `step` itself."""
    x, y = draw(60, 3).float(), torch.arange(60) % 2
    clients = [(x[i::6], y[i::6]) for i in range(6)]
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    settings = ra.training.Settings(rounds=6, batch=4, momentum=0.0, rate=0.5, share=share)
    attack = ra.attacks.SignFlip()
    loss = nn.functional.cross_entropy
    made = [
        ra.training.Federation(model, clients, rule, attack, f=2, loss=loss, classes=2, settings=settings)
        for rule in (ra.FoolsGold(), ra.Mean())
    ]
    here, there = made
    sums = torch.zeros(6, here.flat.d)
    for t in range(6):
        there.w.copy_(here.w)
        there.round(t, verdict=True)  # draws the same clients and batches, and shows what they send
        asked = [i for i in range(6) if not there.noted.weights[i].isnan()]
        before = here.w.clone()
        here.round(t, verdict=True)
        verdict, sums[asked] = ra.FoolsGold().step(there.sent[asked], sums[asked])
        assert torch.allclose(before - 0.5 * verdict.value, here.w, atol=1e-6)
        assert torch.allclose(here.sums, sums, atol=1e-6)
    saved = save(here)
    here.round(6, verdict=False)
    restore(here, saved)
    assert torch.allclose(here.sums, sums, atol=1e-6)
