"""The contract that all rules share, held for every rule that the folders have, alone and behind pre-aggregators."""

from __future__ import annotations

import math
import re
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

import oracle
import robagg
from robagg import Mixer, QuorumError, Rule, parse
from robagg._core.rule import GramRule, stages
from robagg._core.sketch import Sketch
from robagg._core.sorted import SortedRule

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* tolerates nobody with:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.* was given no root:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.* protects as proved with:RuntimeWarning"),
]
"""Few rows allow f=0, which is said each time: tests/core/test_f_in_force.py."""

RULES = [name for name, cls in stages.classes().items() if issubclass(cls, Rule)]
MIXERS = [name for name, cls in stages.classes().items() if issubclass(cls, Mixer)]
CHAINS = [f"{mixer} >> {rule}" for mixer in MIXERS for rule in RULES]
VARIANTS = [
    "tq(iterations=3)",
    "huber(iterations=1)",
    "nnm >> tq(floor=False)",
    "nnm >> huber(floor=False)",
    "nnm >> bucketing >> tq(floor=False)",
    "nnm >> bucketing >> huber",
    "clipping(norm=2.0) >> nnm >> tq",
    "mca(sigma=0.5)",
    "mca(sigma=0.001, iterations=4)",
    "cc(tau=0.3, iterations=5)",
    "nnm >> scaledfilter",
    "spectralfilter(standout=1.5)",
    "rfa(iterations=3, smoothing=0.5)",
    "mean(max_weight=0.5)",
    "bucketing(s=1) >> huber",
    "bucketing(s=3) >> tm",
    "bucketing(s=50) >> tq",
    "clipping(norm=0.5) >> krum",
    "nnm >> bucketing >> tq",
    "bucketing >> nnm >> tq",
    "bucketing(s=5) >> nnm >> multikrum",
    "bucketing >> bucketing >> cm",
    "clipping(norm=2.0) >> nnm >> cm",
    "clipping >> clipping(norm=0.5) >> mean",
    "nnm >> nnm >> rfa",
    "dnc(drop=1.5)",
    "ctma(base='krum')",
    "ctma(base='tq(iterations=5)')",
    "nnm >> ctma(base='tq')",
    "clipping >> ctma(base='tm')",
    "ctma(base='meamed')",
    "ctma(base='rfa')",
    "ctma(base='scaledfilter')",
    "ctma(base='cc(tau=2.0)')",
    "arc >> nnm >> meamed",
    "foolsgold(sharpness=3.0)",
    "signguard(lower=0.5, upper=1.5)",
    "medianclipping >> bucketing >> onemean",
    "medianclipping(times=1.5) >> tm",
]
EVERY = [*RULES, *CHAINS, *VARIANTS]
LENGTHS = {"tau", "smoothing", "sigma", "norm"}
"""Parameters that are lengths: a rule with one of them does not follow when all rows are scaled."""

long = settings.get_profile("long")
few = settings(max_examples=3)


def is_random(rule: Rule) -> bool:
    return any(getattr(mixer, "s", 1) > 1 for mixer in rule.mixers)


def follows_shifts(rule: Rule) -> bool:
    return not any(stage.anchors for stage in rule.stages)


def follows_scales(rule: Rule) -> bool:
    parts = [*rule.stages, getattr(rule.core, "rule", rule.core)]
    return all(getattr(part, name, None) is None for part in parts for name in LENGTHS)


def can_be_followed(rule: Rule, n: int) -> bool:
    return n <= SEARCHED.get(rule.core.name(), n)


def those(*promises: Callable[[Rule], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", [text for text in EVERY if all(holds(parse(text)) for holds in promises)])


def is_settled(rule: Rule) -> bool:
    return not is_random(rule)


every_rule = those()
plain_rule = those(lambda rule: not rule.mixers)


def aggregate(rule: str | Rule, x: Any, seed: int = 0) -> Any:
    return parse(rule)(x, generator=torch.Generator().manual_seed(seed))


def draw_rows(n: int, d: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(a: Any, b: Any, tolerance: float, size: float = 1.0) -> bool:
    a, b = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    return a.shape == b.shape and bool((a - b).abs().le(tolerance * size).all())


def is_finite(value: Any) -> bool:
    return bool(torch.isfinite(torch.as_tensor(value)).all())


sizes = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**32 - 1))
finite64 = st.floats(allow_nan=False, allow_infinity=False, width=64)
finite32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
shapes = st.tuples(st.integers(1, 8), st.integers(0, 4))
wild = st.one_of(hnp.arrays(np.float64, shapes, elements=finite64), hnp.arrays(np.float32, shapes, elements=finite32))


# What comes back


def as_state_dicts(x: Tensor) -> list[Any]:
    """Rows of eight numbers as nests of a tensor, an array and a scalar."""
    return [
        OrderedDict(
            conv=row[:4].reshape(2, 2, 1).clone(),
            rest={"bias": row[4:7].numpy().copy(), "scale": [row[7].clone()]},
        )
        for row in x
    ]


def flat(node: Any) -> Tensor:
    conv, rest = node["conv"], node["rest"]
    return torch.cat([conv.reshape(-1), torch.from_numpy(rest["bias"]), rest["scale"][0][None]])


@every_rule
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kind_structure_and_dtype_come_back(text: str, dtype: torch.dtype) -> None:
    x = draw_rows(7, 8, dtype=dtype)
    value = aggregate(text, x)
    assert type(value) is Tensor
    assert (value.dtype, value.shape, value.device) == (dtype, (8,), x.device)
    array = aggregate(text, x.numpy())
    assert type(array) is np.ndarray
    assert (array.dtype, array.shape) == (x.numpy().dtype, (8,))
    tensors = aggregate(text, list(x))
    assert type(tensors) is Tensor
    arrays = aggregate(text, tuple(x.numpy()))
    assert type(arrays) is np.ndarray
    dicts = aggregate(text, as_state_dicts(x))
    assert type(dicts) is OrderedDict
    assert list(dicts) == ["conv", "rest"]
    assert dicts["conv"].shape == (2, 2, 1)
    assert type(dicts["rest"]["bias"]) is np.ndarray
    assert type(dicts["rest"]["scale"]) is list
    assert dicts["rest"]["scale"][0].shape == ()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    for other in (array, tensors, arrays, flat(dicts)):
        assert torch.as_tensor(other).dtype == dtype
        assert close(other, value, tolerance)


@every_rule
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_computes_as_float32_and_comes_back(text: str, dtype: torch.dtype, digits: float) -> None:
    x = draw_rows(7, 5, seed=3, dtype=dtype)
    value = aggregate(text, x)
    assert value.dtype == dtype
    assert close(value, aggregate(text, x.float()), digits)


@every_rule
def test_the_default_device_is_not_the_rows(text: str) -> None:
    x, generators = draw_rows(9, 40), [torch.Generator().manual_seed(0) for _ in range(2)]
    nests: list[Any] = [{"w": row[:30], "b": [row[30:]], "steps": torch.tensor(3)} for row in x]
    for rows in (x, x * 1e300, nests):
        plain, _ = parse(text, f=2).step(rows, generator=generators[0])
        with torch.device("meta"):
            verdict, _ = parse(text, f=2).step(rows, generator=generators[1])
        value, wanted = [v.value if rows is not nests else v.value["b"][0] for v in (verdict, plain)]
        assert value.device == wanted.device and torch.equal(value, wanted)
        assert torch.equal(verdict.weights, plain.weights) and verdict.reasons == plain.reasons


@every_rule
def test_input_is_never_changed(text: str) -> None:
    x = draw_rows(7, 5, dtype=torch.float32)
    x[1, 2], x[2], x[3, 0] = math.nan, 3e38, -math.inf
    rows = list(x.clone())
    array = x.numpy().copy()
    before = x.numpy().tobytes()
    for given_ in (x, rows, array):
        aggregate(text, given_)
        parse(text).explain(given_)
    assert x.numpy().tobytes() == before
    assert torch.stack(rows).numpy().tobytes() == before
    assert array.tobytes() == before


@every_rule
def test_result_shares_no_memory_with_the_input(text: str) -> None:
    for n in (1, 4):
        x = draw_rows(n, 3)
        before = x.clone()
        aggregate(text, x).fill_(7.0)
        assert torch.equal(x, before)


Point = namedtuple("Point", ["w", "b"])


@every_rule
def test_views_of_any_layout_give_what_copies_give(text: str) -> None:
    base = draw_rows(12, 14, seed=5, dtype=torch.float32)
    readonly = base.numpy().copy()
    readonly.flags.writeable = False
    packed = np.zeros(6, dtype=[("a", "u1"), ("b", "f4", 5)])
    packed["b"] = base.numpy()[:6, :5]
    views: list[Any] = [
        base.T,
        base[::2, ::3],
        base[:, 3:9],
        base[1].expand(5, 14),
        base.clone().requires_grad_(),
        readonly,
        np.asfortranarray(base.numpy()),
        base.numpy()[::-1, ::-1],
        base.numpy().astype(">f4"),
        packed["b"],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message=".* tolerates nobody with|.* was given no root|.* protects as proved with"
        )
        for view in views:
            copy = view.detach().clone().contiguous() if isinstance(view, Tensor) else np.array(view, dtype="f4")
            value = aggregate(text, view)
            assert close(
                np.asarray(
                    torch.as_tensor(np.asarray(value.detach() if isinstance(value, Tensor) else value, dtype="f4"))
                ),
                aggregate(text, copy),
                1e-5,
            )
            assert value.dtype == view.dtype


@every_rule
def test_leaves_of_any_layout_give_what_copies_give(text: str) -> None:
    images = draw_rows(5, 2 * 3 * 4 * 4, seed=6).reshape(5, 2, 3, 4, 4)
    plain = [Point(image.contiguous(), image[0, 0, 0].clone()) for image in images]
    last = [Point(p.w.to(memory_format=torch.channels_last), p.b) for p in plain]
    a, b = aggregate(text, plain), aggregate(text, last)
    assert type(a) is type(b) is Point
    assert torch.allclose(a.w, b.w, atol=1e-12)
    assert torch.allclose(a.b, b.b, atol=1e-12)
    assert b.w.is_contiguous(memory_format=torch.channels_last)
    mixed = [last[i] if i % 2 else plain[i] for i in range(5)]
    assert torch.allclose(aggregate(text, mixed).w, a.w, atol=1e-12)


# What does not matter


@those(is_settled)
@few
@given(size=sizes)
def test_row_order_does_not_matter(text: str, size: tuple[int, int, int]) -> None:
    rule = parse(text)
    n, d, seed = size
    x = draw_rows(n, d, seed)
    assume(margin(rule, x) > 1e-6)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert close(rule(x[order]), rule(x), 1e-9)


@those(is_random)
def test_what_is_random_is_so_by_its_generator(text: str) -> None:
    x = draw_rows(12, 4)
    assert torch.equal(aggregate(text, x, seed=1), aggregate(text, x, seed=1))
    torch.manual_seed(3)
    first = parse(text)(x)
    torch.manual_seed(3)
    assert torch.equal(parse(text)(x), first)
    if not text.endswith(("mean", "cc")) and "s=50" not in text:
        assert any(not torch.equal(aggregate(text, x, seed=k), aggregate(text, x, seed=1)) for k in range(2, 12))


@those(follows_shifts)
@few
@given(size=sizes, shift=st.sampled_from([1.0, -1e3, 1e6]))
def test_a_constant_added_to_all_rows_is_added_to_the_result(
    text: str, size: tuple[int, int, int], shift: float
) -> None:
    rule = parse(text)
    x = draw_rows(*size)
    assume(margin(rule, x) > 1e-6)
    offset = shift * torch.arange(1.0, size[1] + 1, dtype=torch.float64)
    assert close(aggregate(rule, x + offset), aggregate(rule, x) + offset, 1e-13, 1e3 + 20 * abs(shift) * size[1])


@those(follows_scales)
@few
@given(size=sizes, power=st.sampled_from([-100, -40, 60]), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_rows_scaled_by_a_power_of_two_scale_the_result(
    text: str, size: tuple[int, int, int], power: int, dtype: torch.dtype
) -> None:
    rule = parse(text)
    x = draw_rows(*size, dtype=dtype)
    assume(margin(rule, x.double()) > 1e-4)
    power *= 1 if dtype == torch.float32 else 9
    scaled = aggregate(rule, x * 2.0**power).double() * 2.0**-power
    assert close(scaled, aggregate(rule, x), 1e-4 if dtype == torch.float32 else 1e-9)


@every_rule
def test_parameters_that_are_lengths_hold_at_any_size_of_the_rows(text: str) -> None:
    """Rows of 1e200 are scaled to be computed with; a radius of 10 is still 10."""
    x = draw_rows(7, 4, seed=1) * 1e200
    lengths = {name: getattr(s, name) for s in parse(text).stages for name in LENGTHS if getattr(s, name, None)}
    value = aggregate(text, x)
    if "tau" in lengths:
        assert value.norm() <= lengths["tau"] * 10
    elif "norm" in lengths:
        assert value.norm() <= lengths["norm"] * (1 + 1e-9)
    else:
        assert 1e198 < value.abs().max() < 1e201


@every_rule
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_identical_rows_give_that_row_and_believe_it(text: str, dtype: torch.dtype) -> None:
    row = 0.1 * draw_rows(1, 6, seed=9, dtype=dtype)[0]
    for n in (1, 2, 5, 8):
        verdict = parse(text).explain(row.expand(n, 6))
        assert close(verdict.value, row, 1e-6 if dtype == torch.float32 else 1e-15)
        assert not verdict.rejected.any()
        if parse(text).core.name() not in CHOOSES:
            assert verdict.not_believed == []


# Few rows, few columns, every f


@every_rule
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("d", [0, 1, 3])
def test_few_rows_and_few_columns(text: str, n: int, d: int) -> None:
    x = 0.1 * draw_rows(n, d, seed=n, dtype=torch.float32)
    verdict = parse(text).explain(x)
    assert verdict.value.shape == (d,)
    assert within(verdict.value, x, 1e-6) or "fltrust" in text
    assert verdict.weights.shape == verdict.distances.shape == (n,)
    if n == 1:
        assert close(verdict.value, x[0], 1e-6)
    empty = parse(text)([{"w": x[i], "empty": torch.zeros(0, 2)} for i in range(n)])
    assert empty["empty"].shape == (0, 2)


@every_rule
@pytest.mark.parametrize("n", [4, 7, 10])
def test_every_f_that_n_allows_as_number_share_and_none(text: str, n: int) -> None:
    x = draw_rows(n, 3, seed=n)
    most = (n - 1) // 2
    for f in range(most + 1):
        value = aggregate(parse(text, f=f), x)
        assert is_finite(value)
        assert torch.equal(value, aggregate(parse(text, f=np.int64(f)), x))
        share = f / n
        assert torch.equal(value, aggregate(parse(text, f=share), x)), f"share {share}"
    assert torch.equal(aggregate(text, x), aggregate(parse(text, f=most), x))
    assert torch.equal(aggregate(text, x), aggregate(parse(text, f=0.4999999999999), x))
    with pytest.raises(ValueError, match=rf"n must be at least 2f\+1, got n={n}, f={most + 1}"):
        aggregate(parse(text, f=most + 1), x)


def test_a_million_columns() -> None:
    x = torch.randn(5, 10**6, generator=torch.Generator().manual_seed(0))
    x[4] = 100.0
    for text in ("tq", "cm", "nnm >> krum"):
        value = aggregate(parse(text, f=1), x)
        assert value.shape == (10**6,)
        assert float((value - x[:4].mean(0)).norm()) < float(x[0].norm())


@pytest.mark.slow
@every_rule
def test_every_rule_on_a_million_columns(text: str) -> None:
    x = torch.randn(5, 10**6, generator=torch.Generator().manual_seed(0))
    x[4] = 1e30
    assert is_finite(aggregate(parse(text, f=1), x))


# Byzantine rows


POISON = [math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-42, -1e-45]


def poison(x: Tensor, byzantine: Iterable[int], seed: int) -> Tensor:
    """All that can go wrong at once in the Byzantine rows: whole rows and single numbers."""
    x = x.clone()
    numbers = [*POISON, *([1.7e308, -1.7e308, 5e-324] if x.dtype == torch.float64 else [])]
    for k, row in enumerate(byzantine):
        value = numbers[(seed + 3 * k) % len(numbers)]
        if k % 2:
            x[row] = value
        else:
            x[row, seed % x.shape[1]] = value
    return x


@every_rule
@few
@given(n=st.integers(3, 12), d=st.integers(1, 5), seed=st.integers(0, 10**6), double=st.booleans())
def test_up_to_f_poisoned_rows_leave_a_finite_result(text: str, n: int, d: int, seed: int, double: bool) -> None:
    f = (n - 1) // 2
    x = poison(draw_rows(n, d, seed, torch.float64 if double else torch.float32), range(n - f, n), seed)
    verdict = parse(text, f=f).explain(x, generator=torch.Generator().manual_seed(seed))
    assert is_finite(verdict.value)
    assert is_finite(verdict.weights)
    for i, row in enumerate(x):
        broken = not is_finite(row)
        assert (verdict.reasons[i] == "not finite") == broken
        assert math.isnan(float(verdict.distances[i])) == broken
        if broken:
            assert verdict.rejected[i]
            assert verdict.weights[i] == 0
    assert len(str(verdict).splitlines()) >= n + 2


@every_rule
@settings(max_examples=5)
@given(x=wild)
def test_any_finite_rows_give_a_finite_result_in_their_hull(text: str, x: Any) -> None:
    check_hull(text, x)


@pytest.mark.slow
@every_rule
@long
@given(x=wild)
def test_any_finite_rows_give_a_finite_result_in_their_hull_at_length(text: str, x: Any) -> None:
    check_hull(text, x)


def check_hull(text: str, x: Any) -> None:
    verdict = parse(text).explain(x, generator=torch.Generator().manual_seed(0))
    assert is_finite(verdict.value)
    assert is_finite(verdict.weights)
    assert is_finite(verdict.distances)
    assert "fltrust" in text or within(verdict.value, x, 1e-5 if x.dtype == np.float32 else 1e-12)
    str(verdict)


def within(value: Any, x: Any, slack: float) -> bool:
    """Each coordinate between the least and the largest of the rows and 0, up to rounding of the largest.

    Far rows may be scaled down towards the origin, and the rules with an origin start there.
    """
    v, rows = torch.as_tensor(value).double(), torch.as_tensor(x).double()
    rows = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
    # Halves, because the room beyond the largest number is none. A sum of subnormals rounds by half the smallest of
    # them at every row; where rows are scaled down because one number is huge, others become subnormal.
    room = slack * rows.abs().amax(dim=0) / 2 + len(rows) * (
        2.0**-149 + (float(rows.abs().max()) if rows.numel() else 0.0) * 2.0**-1072
    )
    lo, hi = rows.amin(dim=0) / 2 - room, rows.amax(dim=0) / 2 + room
    return bool(((v / 2 >= lo) & (v / 2 <= hi)).all())


ROBUST = [
    *("bulyan", "caf", "cge", "cm", "ctma", "dnc", "fltrust", "huber", "krum", "mca", "mda", "meamed", "monna"),
    *("multikrum", "onecentre", "onemean", "rfa", "scaledfilter", "signguard", "smea", "spectralfilter", "tm", "tq"),
]
FOOLABLE = {"mean", "cc", "foolsgold"}
"""Mean has no defence; CC goes where a fixed radius lets it; FoolsGold looks for clones alone."""
ONE_LOOK = {"dnc"}
"""Far rows move the mean that it measures from: it holds while they are few, and not with most of the weight."""
CHOOSES = {"krum", "multikrum", "monna", "cge", "ctma", "dnc", "mda", "onecentre", "onemean", "smea"}
"""Rules that choose rows: of equal ones too, some are not chosen."""
SEARCHED = {"smea": 16, "mda": 16}
"""Rules that search all choices, and the most rows for which the oracle does."""


def test_every_rule_is_known_as_robust_or_foolable() -> None:
    assert set(RULES) == {*ROBUST, *FOOLABLE}


@pytest.mark.parametrize("text", [*ROBUST, *(f"nnm >> {rule}" for rule in ROBUST)])
@pytest.mark.parametrize("far", [1e3, -1e10, 1e30, 3e38, "1e300"])
@few
@given(seed=st.integers(0, 10**6), f=st.integers(1, 5), d=st.integers(1, 30))
def test_byzantine_rows_cannot_move_a_robust_rule(text: str, far: Any, seed: int, f: int, d: int) -> None:
    n = 20
    x = draw_rows(n, d, seed, torch.float64 if isinstance(far, str) else torch.float32) + 2
    honest = x[: n - f].double()
    x[n - f :] = float(far) * torch.linspace(0.5, 1, f)[:, None]
    value = aggregate(parse(text, f=f), x[torch.randperm(n, generator=torch.Generator().manual_seed(seed))])
    centre = honest.mean(0)
    assert float((value.double() - centre).norm()) <= 3 * float((honest - centre).norm(dim=1).max())


@pytest.mark.parametrize("text", ["cm", "tm"])
@given(x=hnp.arrays(np.float32, st.tuples(st.just(9), st.integers(1, 4)), elements=finite32))
def test_sorted_rules_stay_between_the_honest_rows_in_each_coordinate(text: str, x: Any) -> None:
    honest = torch.from_numpy(x[:5])
    value = parse(text, f=4)(x)
    assert bool((torch.from_numpy(value) >= honest.amin(0)).all())
    assert bool((torch.from_numpy(value) <= honest.amax(0)).all())


@pytest.mark.parametrize("far", [1e12, 1e25, 3e38])
@pytest.mark.parametrize("text", [t for t in [*ROBUST, *(f"nnm >> {r}" for r in ROBUST)] if follows_scales(parse(t))])
def test_a_far_row_does_not_blind_a_rule_to_tiny_honest_rows(text: str, far: float) -> None:
    """Squares of honest distances vanish in float32 beside a far row that fits."""
    x = draw_rows(9, 6, seed=4, dtype=torch.float32)
    tiny = x * 2.0**-90
    x[8], tiny[8] = far, far
    value, small = aggregate(parse(text, f=1), x), aggregate(parse(text, f=1), tiny)
    if "huber" in text:  # a far row pulls by its direction only, which is the same
        assert close(small.double() * 2.0**90, value, 1e-3)
    else:
        assert close(small.double() * 2.0**90, value, 1e-4)


# Broken rows


@every_rule
@few
@given(n=st.integers(3, 11), d=st.integers(1, 4), seed=st.integers(0, 10**6), data=st.data())
def test_broken_rows_leave_the_rule_on_the_rest_with_the_f_of_the_contract(
    text: str, n: int, d: int, seed: int, data: Any
) -> None:
    f = data.draw(st.integers(0, (n - 1) // 2), "f")
    q = data.draw(st.integers(0, n - 1), "broken")
    x = draw_rows(n, d, seed)
    broken = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:q]
    rest = [i for i in range(n) if i not in broken.tolist()]
    x[broken, seed % d] = POISON[seed % 3]
    left = n - q
    rule = parse(text, f=f)
    if left < 2 * f + 1 and q > f:
        with pytest.raises(QuorumError, match=rf"got {left} sound and {q} broken of {n} \(row \d+: not finite"):
            rule(x)
        return
    kept_f = f if left >= 2 * f + 1 else (left - 1) // 2
    assert kept_f >= f - q
    value = aggregate(rule, x)
    assert is_finite(value)
    assume(margin(parse(text, f=kept_f), x[rest]) > 1e-6)
    assert close(value, aggregate(parse(text, f=kept_f), x[rest]), 1e-9)


@every_rule
def test_f_none_and_a_share_are_of_all_rows_given(text: str) -> None:
    rule = parse(text)
    x = draw_rows(10, 3, seed=2)
    x[9] = math.nan
    assert close(aggregate(rule, x), aggregate(parse(text, f=4), x[:9]), 1e-9)
    assert close(aggregate(parse(text, f=0.3), x), aggregate(parse(text, f=3), x[:9]), 1e-9)
    x[5:] = math.nan
    with pytest.raises(QuorumError):
        rule(x)


@every_rule
def test_two_rows_of_which_one_is_broken(text: str) -> None:
    x = 0.1 * draw_rows(2, 3, seed=1)
    x[0, 0] = math.nan
    assert close(aggregate(text, x), x[1], 1e-12)
    with pytest.raises(QuorumError, match="0 sound and 2 broken"):
        aggregate(text, torch.full((2, 3), math.inf))


STRANGERS: dict[str, Callable[[Any], Any]] = {
    "as None where a tensor": lambda row: None,
    "as str where a tensor": lambda row: "spam",
    "lacks 'b'": lambda row: {"w": row["w"]},
    "has 'c', which most rows lack": lambda row: row | {"c": torch.zeros(1)},
    r"\(2, 3\) .* where most have tensor torch.float64 \(3, 2\)": lambda row: row | {"w": row["w"].T.clone()},
    "float32 .* where most have .* torch.float64": lambda row: row | {"w": row["w"].float()},
    "as array float64": lambda row: row | {"w": row["w"].numpy()},
    "sparse": lambda row: row | {"w": row["w"].to_sparse()},
    "comes as list where most have dict": lambda row: [],
    "has 'b' as str where": lambda row: row | {"b": "spam"},
    "complex": lambda row: row | {"b": row["b"].to(torch.complex128)},
}


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("reason", STRANGERS)
def test_a_row_of_another_structure_is_dropped_with_a_reason(text: str, reason: str) -> None:
    x = draw_rows(7, 8, seed=8)
    rows: list[Any] = [{"w": row[:6].reshape(3, 2), "b": row[6:]} for row in x]
    rows[2] = STRANGERS[reason](rows[2])
    verdict = parse(text, f=2).explain(rows)
    rest = torch.cat([x[:2], x[3:]])
    value = torch.cat([verdict.value["w"].reshape(-1), verdict.value["b"]])
    assert close(value, parse(text, f=2)(rest), 1e-9)
    assert verdict.rejected.tolist() == [i == 2 or bool(verdict.rejected[i]) for i in range(7)]
    assert verdict.weights[2] == 0
    assert math.isnan(verdict.distances[2])
    assert re.search(reason, verdict.reasons[2])


# What must be refused


BAD: list[tuple[Any, type[Exception], str]] = [
    (torch.zeros(3), ValueError, r"\(n, d\).*got \(3,\)"),
    (torch.zeros(3, 2, 2), ValueError, r"\(n, d\).*got \(3, 2, 2\)"),
    (np.zeros(()), ValueError, r"\(n, d\).*got \(\)"),
    (torch.zeros(0, 3), ValueError, "at least one client"),
    ([], ValueError, "at least one client"),
    ((), ValueError, "at least one client"),
    ([torch.zeros(3), torch.zeros(4)], ValueError, r"one structure, got 1 of 2.*\(4,\).*\(3,\)"),
    ([np.zeros(3), np.zeros(4), np.zeros(5)], ValueError, "one structure, got 1 of 3"),
    ([[1.0, 2.0], [1.0]], TypeError, "as float where a tensor or an array must be"),
    ([{}, {}, {}], ValueError, "no tensor or array"),
    ([None, None, None], TypeError, "as None where a tensor or an array must be"),
    (["a", "b", "b"], TypeError, "as str where a tensor or an array must be"),
    (torch.zeros(3, 2, dtype=torch.complex64), TypeError, "got torch.complex64"),
    (np.zeros((3, 2), complex), TypeError, "got complex128"),
    ([np.zeros(2, complex)] * 3, TypeError, "as complex128 where dense real numbers"),
    (torch.zeros(3, 2, dtype=torch.int64), TypeError, "got torch.int64"),
    (np.zeros((3, 2), bool), TypeError, "got bool"),
    (
        [torch.zeros(2, dtype=torch.int32)] * 3,
        TypeError,
        "row 0 must hold floating-point numbers, got only torch.int32",
    ),
    (np.zeros((3, 2), object), TypeError, "got object"),
    (np.zeros((3, 2), "U3"), TypeError, "got <U3"),
    (torch.zeros(3, 2).to_sparse(), TypeError, "dense.*got torch.float32 in torch.sparse_coo"),
    (np.ma.masked_array(np.zeros((3, 2)), mask=True), TypeError, "must have no mask.*got MaskedArray"),
    ([np.ma.masked_array(np.zeros(2), mask=True)] * 3, TypeError, "as MaskedArray where .* without a mask must be"),
    ("rows", TypeError, "got str"),
    (None, TypeError, "got None"),
    (3.0, TypeError, "got float"),
    ({"w": torch.zeros(3)}, TypeError, "got dict"),
    ((row for row in torch.zeros(3, 2)), TypeError, "got generator"),
]


@pytest.mark.parametrize("text", [*RULES, *CHAINS[::7]])
@pytest.mark.parametrize("k", range(len(BAD)))
def test_rows_it_cannot_take_are_refused_in_a_sentence(text: str, k: int) -> None:
    x, error, words = BAD[k]
    with pytest.raises(error, match=f"(?i){words}"):
        parse(text)(x)


@pytest.mark.parametrize(
    "name", [name for name, cls in stages.classes().items() if "f" in {g.name for g in fields(cls)}]
)
@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (-1, ValueError, "f must be >= 0, got -1"),
        (True, TypeError, "number of rows.*got True"),
        ("x", TypeError, "number of rows.*got 'x'"),
        ([1], TypeError, r"number of rows.*got \[1\]"),
        (1j, TypeError, "number of rows.*got 1j"),
        (torch.tensor(1), TypeError, "number of rows.*got tensor"),
        (0.5, ValueError, r"f must be .* in \[0, 0.5\), got 0.5"),
        (1.0, ValueError, r"f must be .* in \[0, 0.5\), got 1.0"),
        (-0.1, ValueError, r"f must be .* in \[0, 0.5\), got -0.1"),
        (math.nan, ValueError, r"f must be .* in \[0, 0.5\), got nan"),
        (math.inf, ValueError, r"f must be .* in \[0, 0.5\), got inf"),
    ],
)
def test_an_f_that_is_none_is_refused_when_the_rule_is_made(
    name: str, f: Any, error: type[Exception], words: str
) -> None:
    cls = stages.find(name)
    with pytest.raises(error, match=f"{cls.__name__}: .*{words}"):
        cls(f=f)


FREE = {("mca", "sigma", None), ("rfa", "iterations", None)}


@pytest.mark.parametrize("name", list(stages.classes()))
@pytest.mark.parametrize("bad", [0, -1, -1e-9, math.nan, math.inf, "x", True, None])
def test_parameters_out_of_range_are_refused_when_the_rule_is_made(name: str, bad: Any) -> None:
    cls = stages.find(name)
    for field in fields(cls):
        if field.name == "f" or (cls.name(), field.name, bad) in FREE or (field.name, bad) == ("floor", True):
            continue
        wanted = {"floor": "True or False", "base": "a rule"}.get(field.name, ".* >.*")
        with pytest.raises(ValueError, match=rf"{cls.__name__}: {field.name} must be {wanted}.*got {bad!r}"):
            cls(**{field.name: bad})


@pytest.mark.parametrize("name", list(stages.classes()))
def test_a_numpy_number_is_kept_as_the_number_it_is(name: str) -> None:
    cls = stages.find(name)
    for field in fields(cls):
        for number in (np.int64(3), np.float32(0.5)):
            if field.name in ("f", "floor", "base") or (
                isinstance(number, np.floating) and isinstance(field.default, int)
            ):
                continue
            stage = cls(**{field.name: number})
            assert repr(stage) == repr(cls(**{field.name: number.item()}))
            assert stages.parse(str(stage)) == stage


# What the definitions say


def order_of(mixer: Mixer, n: int, generator: torch.Generator) -> list[int]:
    sketch = Sketch(torch.zeros(n, n, dtype=torch.float64), torch.zeros(()), n, 0)
    return [i for bucket in mixer.matrix(sketch, generator=generator) for i in bucket.nonzero()[:, 0].tolist()]


def gap(values: list[float], k: int) -> float:
    """How far, relatively, the k-th smallest of the values is from the next."""
    s = sorted(values)
    return (s[k] - s[k - 1]) / max(s[k], 1e-300) if 0 < k < len(s) else math.inf


def spread_of(rows: list[list[float]], least: float) -> float:
    """0 where most rows coincide but for the oracle's rounding, which every step of it multiplies; else infinite."""
    centre = oracle.cm(rows)
    spread = max(oracle.spread(rows), least)
    return 0.0 if 0 < spread < 1e-12 * oracle.squared(centre, [0.0] * len(centre)) else math.inf


def clip(mixer: Any, rows: Any, f: int) -> Any:
    match mixer.name():
        case "clipping":
            return oracle.clipping(rows, mixer.norm)
        case "arc":
            return oracle.clip_longest(rows, f)
        case _:
            return oracle.clip_to_median(rows, mixer.times)


CHOOSING: dict[str, Callable[[Any, int], tuple[list[float], float]]] = {
    "cge": lambda rows, f: oracle.nearest_to(rows, f, [0.0] * len(rows[0])),
    "onemean": oracle.one_mean,
    "onecentre": oracle.one_centre,
    "smea": oracle.smea,
    "mda": oracle.mda,
    "meamed": oracle.meamed,
    "bulyan": oracle.bulyan,
    "monna": lambda rows, f: oracle.nearest_to(rows, f, oracle.cm(rows)),
    "fltrust": lambda rows, f: oracle.fltrust(rows, oracle.cm(rows)),
}
"""Rules without parameters whose oracle says by what margin it decided."""


def follow(rule: Rule, x: Tensor, seed: int = 0) -> tuple[list[float], float]:
    """The oracle's value and the smallest margin by which anything was decided on the way to it."""
    rows = x.double().tolist()
    generator = torch.Generator().manual_seed(seed)
    n = len(rows)
    tolerances = [stage.resolve_f(n) for stage in rule.stages]
    margins = [math.inf]
    sent, shares = rows, [[float(i == j) for j in range(n)] for i in range(n)]
    for k, mixer in enumerate(rule.mixers):
        match mixer.name():
            case "nnm":
                distances = [[oracle.squared(a, b) for b in rows] for a in rows]
                margins += [gap(row, len(rows) - tolerances[k]) for row in distances]
                shares = [oracle.mean([shares[j] for j in near]) for near in oracle.neighbours(rows, tolerances[k])]
                rows = oracle.nnm(rows, tolerances[k])
            case "bucketing":
                order = order_of(mixer, len(rows), generator)
                shares = oracle.bucketing(shares, order, mixer.s)
                rows = oracle.bucketing(rows, order, mixer.s)
                tolerances = [min(f, (len(rows) - 1) // 2) for f in tolerances]
            case "clipping" | "arc" | "medianclipping":
                before, rows = rows, clip(mixer, rows, tolerances[k])
                zero = [0.0] * x.shape[1]
                lengths = [
                    (oracle.distance(a, zero), oracle.distance(b, zero)) for a, b in zip(rows, before, strict=True)
                ]
                scales = [new / old if old else 1.0 for new, old in lengths]
                shares = [[scale * share for share in row] for scale, row in zip(scales, shares, strict=True)]
            case unknown:
                raise AssertionError(f"tests/oracle.py must define {unknown} too")
    core, f = rule.core, tolerances[-1]
    floored = getattr(core, "floor", False) and any(mixer.name() == "nnm" for mixer in rule.mixers)
    value, near = follow_core(core, rows, f, sent, oracle.floor(sent, shares) if floored else 0.0)
    return value, min([near, *margins])


def follow_core(core: Any, rows: Any, f: int, sent: Any, least: float = 0.0) -> tuple[list[float], float]:
    """The same of a rule alone, for rows behind its pre-aggregators."""
    margins = [math.inf]
    match core.name():
        case "mean":
            value = oracle.mean(rows)
        case "cm":
            value = oracle.cm(rows)
        case "tm":
            value = oracle.tm(rows, f)
        case "krum":
            value = oracle.krum(rows, f)
            margins.append(gap(oracle.krum_scores(rows, f), 1))
        case "multikrum":
            value = oracle.multikrum(rows, f)
            margins.append(gap(oracle.krum_scores(rows, f), len(rows) - f))
        case "foolsgold":
            value, near = oracle.foolsgold(rows, sharpness=core.sharpness)
            margins.append(near)
        case "signguard":
            value, near = oracle.signguard(rows, core.lower, core.upper)
            margins.append(near)
        case name if name in CHOOSING:
            value, near = CHOOSING[name](rows, f)
            margins.append(near)
        case "dnc":
            value, near = oracle.dnc(rows, f, core.drop)
            margins.append(near)
        case "ctma":
            base, decided = follow_core(core.rule, rows, f, sent, least)
            value, near = oracle.nearest_to(rows, f, base)
            margins += [decided, near]
        case "caf":
            value, near = oracle.caf(rows, f)
            margins.append(near)
        case "scaledfilter":
            value, near = oracle.caf(rows, f, core.standout, seen=oracle.scaled(rows, f, sent))
            margins.append(near)
        case "spectralfilter":
            value, near = oracle.caf(rows, f, core.standout)
            margins.append(near)
        case "rfa":
            value = oracle.rfa(rows, core.iterations or 3000, core.smoothing)
        case "huber":
            value = oracle.huber(rows, f, core.iterations, least)
            margins.append(spread_of(rows, least))
        case "cc":
            value = oracle.cc(rows, core.tau, core.iterations)
        case "mca":
            value = oracle.mca(rows, core.sigma, core.iterations)
            if core.sigma is not None and len(rows) > 1:
                # Between two rows that are far in widths, a step multiplies what rounding made of their difference:
                # a row must be near, or nearest by far.
                first, second, *_ = sorted(oracle.squared(row, oracle.cm(rows)) / 2 / core.sigma**2 for row in rows)
                margins.append(math.inf if first < 0.4 or second - first > 40 else 0.0)
        case "tq":
            value, near = oracle.tq(rows, f, core.iterations, least)
            margins += [near, spread_of(rows, least)]
        case unknown:
            raise AssertionError(f"tests/oracle.py must define {unknown} too")
    return value, min(margins)


def margin(rule: Rule, x: Tensor) -> float:
    return follow(rule, x)[1]


def check_definition(text: str, n: int, d: int, seed: int, f: Any, scale: float) -> None:
    rule = parse(text, f=f)
    assume(can_be_followed(rule, n))
    x = scale * draw_rows(n, d, seed)
    x[: n // 3] += 5 * scale
    wanted, decided = follow(rule, x, seed)
    assume(decided > 1e-4)
    assert close(aggregate(rule, x, seed), wanted, 1e-9, scale)
    # float32 holds squared distances to 1e-7 of the farthest: MCA takes their exponential, and a row that RFA comes as
    # near to as its smoothing weighs by the inverse of such a distance.
    farthest = float((x - x.median(0).values).square().sum(1).max())
    sigma, smoothing = getattr(rule.core, "sigma", None), getattr(rule.core, "smoothing", None)
    if sigma is not None and farthest > 100 * sigma**2:
        return
    if smoothing is not None and farthest > 1e5 * smoothing**2:
        return
    if "fltrust" in text:
        return  # it scales rows by lengths, which float32 does not know of rows much shorter than the farthest
    rounded = x.float()
    wanted, decided = follow(rule, rounded, seed)
    assume(decided > 1e-4)
    # The steps of a filter each take on what rounding made of those before.
    filters = rule.core.name() in ("caf", "scaledfilter", "spectralfilter")
    assert close(aggregate(rule, rounded, seed), wanted, 1e-3 if filters else 1e-4, scale)


any_f = st.one_of(st.none(), st.integers(0, 4), st.sampled_from([0.1, 0.25, 0.4]))


@every_rule
@settings(max_examples=6)
@given(
    n=st.integers(1, 12), d=st.integers(1, 8), seed=st.integers(0, 10**6), f=any_f, scale=st.sampled_from([0.1, 1, 30])
)
def test_every_rule_does_what_its_definition_says(text: str, n: int, d: int, seed: int, f: Any, scale: float) -> None:
    assume(not isinstance(f, int) or n >= 2 * f + 1)
    check_definition(text, n, d, seed, f, scale)


@pytest.mark.slow
@every_rule
@long
@given(
    n=st.integers(1, 40), d=st.integers(1, 20), seed=st.integers(0, 10**6), f=any_f, scale=st.sampled_from([0.1, 1, 30])
)
def test_every_rule_does_what_its_definition_says_at_length(
    text: str, n: int, d: int, seed: int, f: Any, scale: float
) -> None:
    assume(not isinstance(f, int) or n >= 2 * f + 1)
    check_definition(text, n, d, seed, f, scale)


@pytest.mark.parametrize("seed", range(20))
def test_krum_takes_the_first_of_the_nearest_two_behind_a_pre_aggregator(seed: int) -> None:
    """Of three rows with f=1 the nearest two have one and the same score."""
    x = 3 * torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    clipped = x / x.norm(dim=1, keepdim=True).clamp(min=1)
    first = min((float((clipped[i] - clipped[j]).norm()), i) for i in range(3) for j in range(i + 1, 3))[1]
    assert parse("clipping >> krum", f=1).explain(x).weights.nonzero().flatten().tolist() == [first]


# Text


@every_rule
@pytest.mark.parametrize("f", [None, 0, 2, 0.25])
def test_a_rule_reads_back_from_its_text_and_from_its_repr(text: str, f: Any) -> None:
    rule = parse(text, f=f)
    assert parse(str(rule)) == rule
    assert hash(parse(str(rule))) == hash(rule)
    assert eval(repr(rule), vars(robagg)) == rule
    assert parse(rule) is rule
    assert rule.f == f
    assert rule != parse(text, f=1)
    with pytest.raises((AttributeError, TypeError)):
        rule.f = 3  # type: ignore[misc]
    assert rule.least_n >= 1


# The verdict


@every_rule
@settings(max_examples=5)
@given(n=st.integers(3, 10), d=st.integers(1, 6), seed=st.integers(0, 10**6), far=st.sampled_from([3.0, 50.0, 1e20]))
def test_the_verdict_tells_what_became_of_each_row(text: str, n: int, d: int, seed: int, far: float) -> None:
    f = (n - 1) // 3
    rule = parse(text, f=f)
    x = draw_rows(n, d, seed)
    x[n - f :] += far
    nan = n - 1 if f else None
    if nan is not None:
        x[nan, 0] = math.nan
    verdict = rule.explain(x, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(verdict.value, aggregate(rule, x, seed))
    assert verdict.rule == str(rule)
    sound = [i for i in range(n) if i != nan]
    total = float(verdict.weights.sum()) + verdict.median_weight
    if rule.core.name() == "fltrust":
        assert total >= 0  # short rows are lengthened
    elif any(mixer.anchors for mixer in rule.mixers) or rule.core.name() in ("cc", "signguard"):
        assert -1e-9 <= total <= 1 + 1e-9
    else:
        assert total == pytest.approx(1)
    assert bool((verdict.weights >= -1e-12).all())
    gaps = (x[sound] - verdict.value).norm(dim=1)
    assert torch.allclose(verdict.distances[sound], gaps, rtol=1e-9, atol=1e-12)
    if nan is not None:
        assert verdict.reasons[nan] == "not finite"
        assert verdict.rejected[nan]
        assert verdict.weights[nan] == 0
        assert math.isnan(verdict.distances[nan])
    for i in range(n):
        assert not verdict.rejected[i] or verdict.reasons[i]
        assert (i in verdict.not_believed) == bool(verdict.reasons[i])
    assert (verdict.tau is not None) == (rule.core.name() in ("tq", "huber", "cc"))
    lines = str(verdict).splitlines()
    assert lines[0].startswith(f"{rule}: {n} rows, {len(verdict.not_believed)} not believed")
    for i in range(n):
        assert lines[2 + i].split()[0] == str(i)
        assert lines[2 + i].endswith(verdict.reasons[i])


@plain_rule
@settings(max_examples=5)
@given(n=st.integers(1, 10), d=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_the_value_is_what_the_weights_say(text: str, n: int, d: int, seed: int) -> None:
    rule = parse(text)
    x = draw_rows(n, d, seed)
    verdict = rule.explain(x)
    if isinstance(rule, SortedRule):
        shares = torch.zeros(n, dtype=torch.float64)
        lo, hi = rule.kept(n, (n - 1) // 2)
        for j in range(d):
            shares[x[:, j].argsort()[lo:hi]] += 1 / (hi - lo) / d
        assert close(verdict.weights, shares, 1e-9)
    elif text == "bulyan":
        assert float(verdict.weights.sum()) == pytest.approx(1) and int((verdict.weights > 0).sum()) <= n
    elif text == "meamed":
        shares = torch.zeros(n, dtype=torch.float64)
        h = n - (n - 1) // 2
        for j, m in enumerate(oracle.cm(x.tolist())):
            shares[(x[:, j] - m).abs().argsort()[:h]] += 1 / h / d
        assert close(verdict.weights, shares, 1e-9)
    else:
        median = torch.tensor(oracle.cm(x.tolist()), dtype=torch.float64)
        assert close(verdict.weights @ x + verdict.median_weight * median, verdict.value, 1e-9)
    if isinstance(rule, GramRule) and not rule.needs_median:
        assert verdict.median_weight == 0


@pytest.mark.parametrize("text", [t for t in CHAINS if issubclass(type(parse(t).core), GramRule)])
def test_weights_go_through_pre_aggregators_to_the_rows_that_were_sent(text: str) -> None:
    rule = parse(text, f=2)
    x = draw_rows(9, 5, seed=7)
    verdict = rule.explain(x, generator=torch.Generator().manual_seed(7))
    if verdict.median_weight < 1e-12:
        assert close(verdict.weights @ x, verdict.value, 1e-9)
    else:
        assert rule.core.needs_median


@pytest.mark.parametrize("text", ["tq", "nnm >> tq", "bucketing >> tq", "clipping >> tq", "tq(iterations=3)"])
@given(seed=st.integers(0, 10**6), far=st.sampled_from([3.0, 1e4, 1e30]))
def test_rows_outside_tau_are_rejected_with_the_distance_that_was_compared(text: str, seed: int, far: float) -> None:
    x = draw_rows(12, 4, seed)
    x[9:] = far * (1 + draw_rows(3, 4, seed + 1).abs())
    verdict = parse(text, f=3).explain(x, generator=torch.Generator().manual_seed(seed))
    assert verdict.tau is not None
    for i in range(12):
        words = verdict.reasons[i].split()
        assert bool(words) == bool(verdict.rejected[i])
        if words:
            assert words[1:5] == ["from", "the", "centre,", "beyond"]
            assert float(words[0]) >= float(words[-1]) * (1 - 1e-3)
            assert float(words[-1]) == pytest.approx(verdict.tau, rel=1e-3)
    if text == "tq" and far > 1e3:
        assert verdict.rejected.tolist()[9:] == [True] * 3
        assert verdict.weights[9:].tolist() == [0.0] * 3
