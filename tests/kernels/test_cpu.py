"""The C kernels keep the promises of reference.py, on every instruction set that this machine has."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from robagg import CC, MCA, RFA, TQ, Huber, Sketch, kernels
from robagg._core.filtering import weigh_down
from robagg.kernels import cpu, cpu_library, cpu_many, reference, team
from robagg.kernels.types import Sketched

pytestmark = pytest.mark.skipif(not cpu.available(), reason="the C kernels are not built")

WIDTHS = [0, 1, 15, 16, 17, 511, 512, 513, 5000]
COUNTS = [*range(1, 66), 100, 200, 300]
DTYPES = [
    (torch.float32, torch.float32),
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float64, torch.float64),
    (torch.float32, torch.float64),
    (torch.float16, torch.float64),
    (torch.bfloat16, torch.float64),
]
F32, F64 = torch.float32, torch.float64


@pytest.fixture(params=cpu.isas())
def isa(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True, scope="module")
def threads() -> Iterator[None]:
    """One thread: on a busy machine small tensors are slow with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def draw(n: int, d: int, dtype: torch.dtype = F32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(n, d, generator=generator, dtype=F64) * 3).to(dtype)


def dense(m: int, n: int) -> Tensor:
    return torch.rand(m, n, generator=torch.Generator().manual_seed(1), dtype=F64) / n


def buckets(n: int) -> Tensor:
    mix = torch.zeros((n + 1) // 2, n, dtype=F64)
    for j, i in enumerate(torch.randperm(n, generator=torch.Generator().manual_seed(2)).tolist()):
        mix[j // 2, i] = 0.5
    return mix


def check_sketch(got: Sketched, want: Sketched, *, exact: bool = True) -> None:
    median, spread, gram, square = got
    close = 1e-5 if median.dtype == F32 else 1e-12
    assert median.dtype == want[0].dtype and spread.dtype == gram.dtype == F64
    assert median.shape == want[0].shape and spread.shape == () and gram.shape == want[2].shape
    if exact:
        assert torch.equal(median, want[0])
    else:
        torch.testing.assert_close(median, want[0], rtol=close, atol=close)
    assert abs(float(spread - want[1])) <= close * float(want[1]) + torch.finfo(median.dtype).tiny
    size = want[2].diagonal().sqrt()
    allowed = close * (size[:, None] * size + (0 if exact else size.max() ** 2)) + torch.finfo(median.dtype).tiny
    assert ((gram - want[2]).abs() <= allowed).all()
    assert torch.equal(gram, gram.T)
    assert (square is None) == (want[3] is None)
    if square is not None and want[3] is not None:
        assert square.dtype == F64 and square.shape == ()
        torch.testing.assert_close(square, want[3], rtol=close, atol=0)


def check_value(got: tuple[Tensor, Tensor], want: tuple[Tensor, Tensor], scale: float = 1.0) -> None:
    close = (1e-5 if want[0].dtype == F32 else 1e-12) * scale
    assert got[0].dtype == want[0].dtype and got[1].dtype == torch.bool and got[1].shape == ()
    torch.testing.assert_close(got[0], want[0], rtol=close, atol=close)
    assert bool(got[1]) == bool(want[1])


def check_all(x: Tensor | list[Tensor], compute: torch.dtype, isa: str) -> None:
    n = len(x)
    check_sketch(cpu.sketch(x, compute=compute, isa=isa), reference.sketch(x, compute=compute))
    middle = (n - 1) // 2, n // 2 + 1
    assert torch.equal(
        cpu.trim(x, *middle, compute=compute, isa=isa)[0], reference.trim(x, *middle, compute=compute)[0]
    )
    for lo, hi in ((n // 4, n - n // 4), (0, n), (n - 1, n)):
        check_value(cpu.trim(x, lo, hi, compute=compute, isa=isa), reference.trim(x, lo, hi, compute=compute))
    weights = torch.linspace(-1, 1, n, dtype=F64)
    check_value(
        cpu.combine(list(x), weights, compute=compute, isa=isa), reference.combine(list(x), weights, compute=compute), n
    )


@pytest.mark.parametrize("n", COUNTS)
def test_every_number_of_rows_agrees_with_the_reference(n: int, isa: str) -> None:
    check_all(draw(n, 531), F32, isa)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 20, 33, 65])
def test_every_number_of_rows_agrees_in_float64(n: int, isa: str) -> None:
    check_all(draw(n, 531, F64), F64, isa)


@pytest.mark.parametrize("d", WIDTHS)
def test_every_width_agrees_with_the_reference(d: int, isa: str) -> None:
    check_all(draw(7, d), F32, isa)
    check_all(draw(6, d, F64), F64, isa)


@pytest.mark.parametrize(("dtype", "compute"), DTYPES)
def test_every_dtype_agrees_with_the_reference(dtype: torch.dtype, compute: torch.dtype, isa: str) -> None:
    check_all(draw(9, 1031, dtype), compute, isa)
    check_all(draw(9, 1031, dtype).T.contiguous().T, compute, isa)


def test_every_float16_and_bfloat16_number_is_read_exactly(isa: str) -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    for dtype in (torch.float16, torch.bfloat16):
        x = bits.view(dtype)[None]
        for compute in (F32, F64):
            value, alarm = cpu.trim(x, 0, 1, compute=compute, isa=isa)
            want = x[0].to(compute)
            assert torch.equal(value[want.isfinite()], want[want.isfinite()]) and alarm
            assert not cpu.trim(x[:, want.isfinite()], 0, 1, compute=compute, isa=isa)[1]


@given(
    values=st.lists(
        st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 1e-42, -1e-45, 0.5]), min_size=3, max_size=3),
        min_size=1,
        max_size=40,
    )
)
@settings(deadline=None, max_examples=25)
def test_ties_zeros_and_denormals_agree_with_the_reference(values: list[list[float]]) -> None:
    for name in cpu.isas():
        check_all(torch.tensor(values, dtype=F32), F32, name)


def test_denormals_are_kept(isa: str) -> None:
    x = torch.tensor([[1e-45], [3e-45], [4e-45]])
    assert cpu.sketch(x, compute=F32, isa=isa)[0].item() == x[1].item()
    assert cpu.combine(list(x), torch.ones(3), compute=F32, isa=isa)[0].item() == x.sum().item()


def test_sums_and_midpoints_of_the_largest_numbers_stay_finite(isa: str) -> None:
    for dtype in (F32, F64):
        x = torch.full((6, 40), torch.finfo(dtype).max, dtype=dtype)
        for lo, hi in ((2, 4), (0, 6), (0, 3)):
            value, alarm = cpu.trim(x, lo, hi, compute=dtype, isa=isa)
            assert torch.equal(value, x[0]) and not alarm
    x = draw(9, 300)
    x[:4] *= 1e37
    check_all(x, F64, isa)
    median, _, gram, _ = cpu.sketch(x, compute=F32, isa=isa)
    assert median.isfinite().all() and not gram.diagonal()[:4].isfinite().any()
    assert gram.diagonal()[4:].isfinite().all()


@pytest.mark.parametrize("n", [1, 2, 5, 20, 33, 64, 70])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_row_that_is_not_finite_shows(n: int, bad: float, isa: str) -> None:
    for compute in (F32, F64):
        for i in range(n):
            x = draw(n, 40)
            x[i, (7 * i) % 40] = bad
            gram = cpu.sketch(x, compute=compute, isa=isa)[2]
            assert not gram[i, i].isfinite()
            assert cpu.trim(x, n // 2, n // 2 + 1, compute=compute, isa=isa)[1]
            assert cpu.trim(x, 0, n, compute=compute, isa=isa)[1]
            assert cpu.combine(list(x), torch.ones(n), compute=compute, isa=isa)[1]


@pytest.mark.parametrize("sparse", [False, True])
def test_an_input_that_is_not_finite_shows_through_a_mix(sparse: bool, isa: str) -> None:
    n = 9
    mix = buckets(n) if sparse else dense(n, n)
    mix[:, 4] = 0  # nobody uses row 4, yet it must show
    for i in range(n):
        x = draw(n, 40)
        x[i, 3 * i] = float("nan")
        assert not cpu.sketch(x, mix=mix, compute=F32, isa=isa)[2].diagonal().isfinite().all()
        assert cpu.trim(x, 1, 3, mix=mix, compute=F32, isa=isa)[1]
    assert not cpu.trim(draw(n, 40), 1, 3, mix=mix, compute=F32, isa=isa)[1]


def test_rows_of_any_strides_agree_with_the_reference(isa: str) -> None:
    base = draw(12, 4000)
    views: list[Tensor | list[Tensor]] = [
        base[::2, ::3],
        base[:, 1:].T.contiguous().T,
        base[:1].expand(5, -1),
        base.view(-1)[:2000].as_strided((5, 700), (3, 1)),
        list(base),
        [base[0, ::2], base[1, :2000], base[2, 5:2005], base.T.contiguous()[:2000, 3]],
    ]
    for rows in views:
        check_all(rows, F32, isa)
        check_all(rows, F64, isa)


def test_vectors_of_different_dtypes_combine(isa: str) -> None:
    vectors = [draw(1, 1500)[0], draw(1, 1500, torch.bfloat16)[0], draw(1, 1500, torch.float16)[0]]
    weights = torch.tensor([0.5, 2.0, -1.0], dtype=F64)
    for compute in (F32, F64):
        check_value(
            cpu.combine(vectors, weights, compute=compute, isa=isa),
            reference.combine(vectors, weights, compute=compute),
        )


def test_a_vector_with_coefficient_0_is_not_read(isa: str) -> None:
    vectors = [draw(1, 50)[0], torch.full((50,), float("nan")), draw(1, 50, seed=1)[0]]
    value, alarm = cpu.combine(vectors, torch.tensor([1.0, 0.0, 2.0]), compute=F32, isa=isa)
    assert not alarm and torch.allclose(value, vectors[0] + 2 * vectors[2])
    value, alarm = cpu.combine(vectors, torch.zeros(3), compute=F32, isa=isa)
    assert not alarm and torch.equal(value, torch.zeros(50))


@pytest.mark.parametrize("n", [1, 4, 19, 40])
def test_anchors_join_the_gram_and_not_the_median(n: int, isa: str) -> None:
    for dtype, compute in ((F32, F32), (torch.bfloat16, F32), (F32, F64)):
        x = draw(n, 700, dtype)
        anchors = [None, draw(1, 700, dtype, 5)[0], draw(1, 1400, compute, 6)[0, ::2]]
        got = cpu.sketch(x, anchors=anchors, compute=compute, isa=isa)
        check_sketch(got, reference.sketch(x, anchors=anchors, compute=compute))


@pytest.mark.parametrize("n", [2, 5, 20, 33])
def test_rows_that_are_mixed_alike_come_out_alike(n: int, isa: str) -> None:
    # One weight a row, as NNM has; rows 0, 3, 6, ... take the same rows, in pairs with others that take different ones.
    mix = torch.tensor([[float((i + j) % 3 != 0) for j in range(n)] for i in range(n)], dtype=F64)
    mix /= mix.sum(1, keepdim=True)
    x = draw(n, 1031)
    got = cpu.sketch(x, mix=mix, compute=F32, isa=isa)
    check_sketch(got, reference.sketch(x, mix=mix, compute=F32), exact=False)
    gram = got[2]
    for i in range(3, n):
        assert torch.equal(gram[i], gram[i - 3])


@pytest.mark.parametrize("n", [1, 2, 9, 20, 35, 70])
@pytest.mark.parametrize("sparse", [False, True])
def test_mixed_rows_agree_with_the_reference(n: int, sparse: bool, isa: str) -> None:
    mix = buckets(n) if sparse else dense(n + 3, n)
    for dtype, compute in ((F32, F32), (torch.float16, F32), (F64, F64)):
        x, m = draw(n, 1031, dtype), mix.shape[0]
        got = cpu.sketch(x, mix=mix, anchors=[None], compute=compute, isa=isa)
        check_sketch(got, reference.sketch(x, mix=mix, anchors=[None], compute=compute), exact=False)
        got2 = cpu.trim(x, m // 4, m - m // 4, mix=mix, compute=compute, isa=isa)
        check_value(got2, reference.trim(x, m // 4, m - m // 4, mix=mix, compute=compute))


@pytest.mark.parametrize(("n", "d"), [(1, 5), (2, 17), (20, 5000), (33, 700), (70, 300), (cpu_many.MOST + 1, 40)])
@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_columns_in_units_of_their_mads_agree_with_the_reference(
    n: int, d: int, votes: bool, floor: float, isa: str
) -> None:
    counts = torch.arange(n) % 3 + 1 if votes else None
    for dtype, compute in DTYPES[:4]:
        x = draw(n, d, dtype) * torch.logspace(-3, 1, d).to(dtype)
        x[:, ::7] = 2  # no MAD at all
        more = {"anchors": [None, x[0].to(compute)], "votes": counts, "compute": compute}
        found = cpu.sketch(x, floor=torch.tensor(floor, dtype=F64), isa=isa, **more)
        wanted = reference.sketch(x, floor=torch.tensor(floor, dtype=F64), **more)
        assert torch.equal(found.median, wanted.median) and torch.allclose(found.spread, wanted.spread)
        bound = float(wanted.gram.diagonal().max()) * (1e-5 if compute == F32 else 1e-12)
        assert torch.allclose(found.gram, wanted.gram, rtol=0, atol=bound + 1e-30)
        plain = cpu.sketch(x, isa=isa, **more)
        assert torch.equal(plain.median, found.median) and torch.equal(plain.spread, found.spread)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 33, 70])
@pytest.mark.parametrize(("dtype", "compute"), DTYPES)
def test_shares_agree_with_the_reference(n: int, dtype: torch.dtype, compute: torch.dtype, isa: str) -> None:
    for d in (0, 1, 17, 1031):
        x, lo = draw(n, d, dtype), n // 4
        x[:, : d // 2] = x[:, : d // 2].round()  # ties
        got = cpu.shares(x, lo, n - lo, compute=compute, isa=isa)
        torch.testing.assert_close(got, reference.shares(x, lo, n - lo, compute=compute), rtol=1e-5, atol=1e-5)
        assert float(got.sum()) == pytest.approx(d, rel=1e-6)
        if n > 1:
            mix = buckets(n)
            got = cpu.shares(x, 0, 1, mix=mix, compute=compute, isa=isa)
            torch.testing.assert_close(got, reference.shares(x, 0, 1, mix=mix, compute=compute), rtol=1e-5, atol=1e-5)
    many = torch.cat([torch.eye(n, dtype=F64), torch.eye(n, dtype=F64)])  # every row twice: each has half of its share
    x = draw(n, 300, dtype)
    got = cpu.shares(x, 0, 2 * n, mix=many, compute=compute, isa=isa)
    assert got.tolist() == pytest.approx([300 / (2 * n)] * (2 * n), rel=1e-5)


@pytest.mark.parametrize(("dtype", "compute"), DTYPES)
def test_distances_agree_with_the_reference(dtype: torch.dtype, compute: torch.dtype, isa: str) -> None:
    for n, d in ((1, 0), (3, 1), (5, 17), (20, 5000)):
        x, point = draw(n, d, dtype), draw(1, d, compute, seed=1)[0]
        torch.testing.assert_close(cpu.measure(x, point, isa=isa), reference.measure(x, point), rtol=1e-12, atol=0)
        torch.testing.assert_close(cpu.measure(x, None, isa=isa), reference.measure(x, None), rtol=1e-12, atol=0)
    wide = torch.full((2, 3), 1e30)
    assert cpu.measure(wide, -wide[0], isa=isa).tolist() == pytest.approx([1.2e61] * 2, rel=1e-6)


def test_the_result_does_not_depend_on_the_number_of_threads(isa: str) -> None:
    results = []
    x, mix = draw(11, 150_001), dense(11, 11)
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(
            [
                *cpu.sketch(x, anchors=[None], compute=F32, isa=isa)[:3],
                *cpu.sketch(x, mix=mix, compute=F64, isa=isa),
                *cpu.trim(x, 3, 8, compute=F32, isa=isa),
                *cpu.combine(list(x), torch.linspace(-1, 1, 11), compute=F32, isa=isa),
                cpu.shares(x, 3, 8, mix=mix, compute=F32, isa=isa),
                cpu.measure(x, x[0], isa=isa),
            ]
        )
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
    check_sketch((results[0][0], results[0][1], results[0][2], None), reference.sketch(x, anchors=[None], compute=F32))


@pytest.fixture
def three_threads() -> Iterator[None]:
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


@pytest.mark.skipif(
    sys.platform != "linux" or "OpenMP" not in torch.__config__.parallel_info(), reason="this torch has no such threads"
)
def test_the_threads_of_torch_are_found() -> None:
    assert team.address() is not None


def test_denormals_are_flushed_where_the_caller_wants_it_whoever_does_the_work(three_threads: None) -> None:
    rows = [torch.full((200_000,), 1e-40) for _ in range(3)]
    kept = cpu.combine(rows, torch.ones(3, dtype=F64), compute=F32)[0]
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU does not flush denormals")
    try:
        flushed = [cpu.combine(rows, torch.ones(3, dtype=F64), compute=F32)[0].view(torch.int32) for _ in range(5)]
    finally:
        torch.set_flush_denormal(False)
    assert bool((kept > 0).all())
    assert all(not value.any() for value in flushed)


@pytest.mark.parametrize("n", [3, 7, 20, 33, 64, 70])
@pytest.mark.parametrize("has_votes", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-39])
def test_flushed_denormals_leave_values_beside_them_as_they_are(
    n: int, has_votes: bool, scale: float, isa: str, three_threads: None
) -> None:
    x, generator = draw(n, 30_000), torch.Generator().manual_seed(n)
    x *= torch.tensor([1.0, scale, 0.0])[torch.randint(0, 3, x.shape, generator=generator)]
    votes = torch.randint(1, 11, (n,), generator=generator) if has_votes else None
    total = n if votes is None else int(votes.sum())
    passes = (
        lambda: cpu.sketch(x, votes=votes, compute=F32, isa=isa),
        lambda: cpu.trim(x, total // 4, total - total // 4, votes=votes, compute=F32, isa=isa)[:1],
        lambda: [cpu.shares(x, total // 4, total - total // 4, votes=votes, compute=F32, isa=isa)] if not scale else [],
    )
    wanted = [value for pass_ in passes for value in pass_() if value is not None]
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU does not flush denormals")
    try:
        found = [value for pass_ in passes for value in pass_() if value is not None]
        assert not (torch.tensor([1e-40]) * 1).view(torch.int32).any()  # the caller's own arithmetic is as it was
    finally:
        torch.set_flush_denormal(False)
    for got, value in zip(found, wanted, strict=True):
        torch.testing.assert_close(got, value, rtol=1e-5, atol=n * torch.finfo(F32).tiny)


def test_whose_threads_do_the_work_leaves_no_trace(three_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(11, 150_001)
    shared = cpu.sketch(x, compute=F32)[:3]
    monkeypatch.setattr(team, "address", lambda: None)
    own = cpu.sketch(x, compute=F32)[:3]
    assert all(torch.equal(a, b) for a, b in zip(shared, own, strict=True))


def test_python_threads_may_aggregate_at_once(three_threads: None) -> None:
    stacks = [draw(11, 40_001, seed=seed) for seed in range(8)]
    alone = [cpu.sketch(x, compute=F32)[:3] for x in stacks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda x: cpu.sketch(x, compute=F32)[:3], stacks))
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have(three_threads: None) -> None:
    x = draw(11, 40_001)
    median = cpu.sketch(x, compute=F32)[0].numpy().tobytes()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        child = pool.apply_async(_median_bytes, (x.numpy(),))
        assert child.get(timeout=60) == median


def _median_bytes(x: np.ndarray) -> bytes:
    return cpu.sketch(torch.from_numpy(x), compute=F32)[0].numpy().tobytes()


def test_the_input_is_not_changed(isa: str) -> None:
    x, mix, weights = draw(7, 600), dense(7, 7), torch.linspace(0, 1, 7, dtype=F64)
    before = x.clone(), mix.clone(), weights.clone()
    cpu.sketch(x, mix=mix, anchors=[x[0], None], compute=F32, isa=isa)
    cpu.sketch(x, compute=F32, isa=isa)
    cpu.trim(x, 2, 5, mix=mix, compute=F64, isa=isa)
    cpu.combine(list(x), weights, compute=F32, isa=isa)
    assert all(torch.equal(a, b) for a, b in zip((x, mix, weights), before, strict=True))


def test_wrong_arguments_say_what_must_be() -> None:
    for pass_ in (cpu.trim, cpu.shares):
        with pytest.raises(ValueError, match="0 <= lo < hi <= 3"):
            pass_(draw(3, 5), 2, 2, compute=F32)
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        cpu.sketch([torch.zeros(5), torch.zeros(4)], compute=F32)
    with pytest.raises(ValueError, match="isa must be one of"):
        cpu.sketch(draw(3, 5), compute=F32, isa="mmx")


def test_tensors_that_lie_nowhere_are_refused() -> None:
    nowhere = torch._efficientzerotensor(3, 5)
    for rows in (nowhere, list(nowhere)):
        with pytest.raises(ValueError, match="must lie in the memory of the CPU, got one on cpu without memory"):
            cpu.trim(rows, 0, 1, compute=F32)
    with pytest.raises(ValueError, match="must lie in the memory of the CPU, got one on meta"):
        cpu.sketch(draw(3, 5), anchors=[torch.zeros(5, device="meta")], compute=F32)
    with pytest.raises(ValueError, match="must lie in the memory of the CPU, got one on meta"):
        cpu.sketch(draw(3, 5), mix=torch.eye(3, dtype=torch.float64, device="meta"), compute=F32)
    assert cpu.trim(torch.zeros(3, 0), 0, 1, compute=F32)[0].shape == (0,)


def test_rows_of_several_dtypes_are_one_leaf_on_every_path() -> None:
    x = draw(5, 40)
    rows, wide = [x[0].double(), x[1], x[2].double(), *x[3:]], x.double()
    mix, weights = torch.full((2, 5), 0.2, dtype=torch.float64), torch.arange(5.0).double()
    for module in (cpu, reference):
        for m in (None, mix):
            for got, wanted in zip(
                (*module.sketch(rows, mix=m, compute=F64), module.shares(rows, 0, 1, mix=m, compute=F64)),
                (*module.sketch(wide, mix=m, compute=F64), module.shares(wide, 0, 1, mix=m, compute=F64)),
                strict=True,
            ):
                assert got is wanted is None or torch.equal(got, wanted)
            assert torch.equal(
                module.trim(rows, 0, 2, mix=m, compute=F64)[0], module.trim(wide, 0, 2, mix=m, compute=F64)[0]
            )
        assert torch.equal(module.combine(rows, weights, compute=F64)[0], module.combine(wide, weights, compute=F64)[0])
        assert torch.equal(module.measure(rows, None), module.measure(wide, None))


def test_the_environment_chooses_the_instruction_set(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBAGG_ISA", isa)
    assert cpu.isa.__wrapped__() == isa
    monkeypatch.setenv("ROBAGG_ISA", "mmx")
    with pytest.raises(ValueError, match="ROBAGG_ISA must be one of"):
        cpu.isa.__wrapped__()


def test_a_library_of_another_version_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_library, "_ABI", -1)
    assert isinstance(cpu_library._open.__wrapped__(), str)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 90])
@pytest.mark.parametrize("scale", [0.0, 10.0, 1e12])
def test_walk_is_the_loop_of_the_rules(n: int, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(n + 2, 50, dtype=F64, generator=torch.Generator().manual_seed(n))
    x[: n // 4] *= scale
    gram = x @ x.T
    rules = [TQ(), Huber(iterations=3), CC(tau=3.3, iterations=5), RFA(smoothing=0.3), MCA(), MCA(sigma=2.5)]
    for f in {0, 1 if n > 2 else 0, (n - 1) // 2}:
        for blur in (0.0, torch.tensor(0.5, dtype=F64)):
            sketch = Sketch(gram, torch.tensor(30.0, dtype=F64), n, f, ("origin", "last"), 2.0**-20, blur)
            for rule in rules:
                got = rule.weights(sketch)
                with monkeypatch.context() as patch:
                    patch.setattr(kernels, "walk", lambda *a, **k: None)
                    wanted = rule.weights(sketch)
                torch.testing.assert_close(got.coefficients, wanted.coefficients, rtol=1e-9, atol=1e-12)
                torch.testing.assert_close(got.reach, wanted.reach, rtol=1e-6, atol=1e-5 * float(wanted.reach.max()))
                if wanted.tau is None:
                    assert got.tau is None and got.outside is None
                else:
                    torch.testing.assert_close(got.tau, wanted.tau)
                    assert torch.equal(got.outside, wanted.outside)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20, 64])
@pytest.mark.parametrize("standout", [0.0, 3.0])
@pytest.mark.parametrize("kind", ["alike", "pulled", "far", "copies", "equal"])
def test_the_loop_of_the_filters_is_that_of_the_reference(n: int, standout: float, kind: str) -> None:
    x = torch.randn(n + 1, 50, dtype=F64, generator=torch.Generator().manual_seed(n))
    for f in {0, n // 5, (n - 1) // 2}:
        if kind == "equal":
            x[:n] = x[0].clone()
        x[:f] += {"pulled": 1.0, "far": 1e6}.get(kind, 0.0)
        if kind == "copies":
            x[: n // 2] = x[0].clone()
        gram, votes = x @ x.T, torch.ones(n, dtype=F64)  # the last row is an anchor
        level, steps = gram.new_tensor(standout * 50 / max(n - 1, 1)), 2 * f + (10 if f and standout else 0)
        got = kernels.weigh_down(gram, votes, f, level, steps)
        assert got is not None
        wanted = weigh_down(gram[:n, :n], votes, f, level, steps)
        if kind != "equal":  # there the rounding of equal rows decides, in either of them
            torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-7)


def test_the_loop_of_the_filters_goes_through_mapped_matrices_in_turn() -> None:
    x = torch.randn(5, 9, 30, dtype=F64, generator=torch.Generator().manual_seed(2))
    grams, levels, votes = x @ x.mT, torch.arange(5, dtype=F64), torch.ones(9, dtype=F64)

    def one(gram: Tensor, level: Tensor) -> Tensor:
        left = kernels.weigh_down(gram, votes, 2, level, 14)
        assert left is not None
        return left

    wanted = torch.stack([one(gram, level) for gram, level in zip(grams, levels, strict=True)])
    assert torch.equal(torch.vmap(one)(grams, levels), wanted)
    assert torch.equal(torch.vmap(one, in_dims=(2, 0))(grams.movedim(0, 2), levels), wanted)

    def none(gram: Tensor) -> Tensor:  # a stack of stacks is left to torch
        assert kernels.weigh_down(gram, votes, 2, levels[0], 14) is None
        return gram

    assert torch.equal(torch.vmap(torch.vmap(none))(grams[None]), grams[None])


def test_the_last_vector_has_what_the_others_leave_of_one(isa: str) -> None:
    x, point = draw(6, 5000), draw(1, 5000)[0]
    weights = torch.linspace(-1, 1.5, 6, dtype=F64)
    wanted = (x.double() * weights[:, None]).sum(dim=0) + (1 - weights.sum()) * point
    for combined in (reference.combine, partial(cpu.combine, isa=isa)):
        for rows, beside in ((x, [point]), ([*x], [point]), ([*x, point], [])):
            value, alarm = combined(rows, weights, beside=beside, compute=F64)
            assert not alarm
            torch.testing.assert_close(value, wanted)


def test_a_result_may_take_the_place_of_a_vector_that_goes_into_it(isa: str) -> None:
    x, weights = draw(6, 5000), torch.linspace(-1, 1, 6, dtype=F64)
    wanted, _ = cpu.combine(list(x), weights, compute=F32, isa=isa)
    spare = x[4].clone()
    got, _ = cpu.combine([*x[:4], spare, x[5]], weights, compute=F32, isa=isa, spare=spare)
    assert got.data_ptr() == spare.data_ptr() and torch.equal(got, wanted)
    unfit = torch.zeros(5000, dtype=F64)
    median, *_ = cpu.sketch(x, compute=F32, isa=isa, spare=unfit)
    assert median.dtype == F32 and not unfit.any()


# Votes


def draw_votes(n: int, kind: str) -> Tensor:
    generator = torch.Generator().manual_seed(n)
    high = {"few": 4, "sizes": 1000, "many": 2**30 // n}[kind]
    votes = torch.randint(0, high, (n,), generator=generator)
    votes[n // 2] += 1
    return votes


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 33, 64, 70])
@pytest.mark.parametrize("kind", ["few", "sizes", "many"])
@pytest.mark.parametrize("dtype", [F32, F64, torch.bfloat16])
def test_votes_agree_with_the_reference_and_with_copies(n: int, kind: str, dtype: torch.dtype, isa: str) -> None:
    x, votes, compute = draw(n, 531, dtype), draw_votes(n, kind), F64 if dtype == F64 else F32
    x[:, :200] = x[:, :200].round()  # ties
    total = int(votes.sum())
    few = torch.repeat_interleave(x, votes, dim=0) if total < 300 else None
    got = cpu.sketch(x, anchors=[None], votes=votes, compute=compute, isa=isa)
    check_sketch(got, reference.sketch(x, anchors=[None], votes=votes, compute=compute))
    if few is not None:
        plain = reference.sketch(few, compute=compute)
        assert torch.equal(got.median, plain.median)
        torch.testing.assert_close(got.spread, plain.spread, rtol=1e-5, atol=1e-9)
    for lo, hi in {
        ((total - 1) // 2, total // 2 + 1),
        (total // 5, total - total // 5),
        (0, total),
        (total - 1, total),
    }:
        value, alarm = cpu.trim(x, lo, hi, votes=votes, compute=compute, isa=isa)
        check_value((value, alarm), reference.trim(x, lo, hi, votes=votes, compute=compute), 3)
        if few is not None:
            check_value((value, alarm), reference.trim(few, lo, hi, compute=compute), 3)
        shares = cpu.shares(x, lo, hi, votes=votes, compute=compute, isa=isa)
        wanted = reference.shares(x, lo, hi, votes=votes, compute=compute)
        torch.testing.assert_close(shares, wanted, rtol=1e-4, atol=1e-3)
        assert float(shares.sum()) == pytest.approx(531, rel=1e-5)


@pytest.mark.parametrize("n", [2, 7, 20, 32, 33, 64])
@pytest.mark.parametrize("kind", ["few", "sizes", "many"])
@pytest.mark.parametrize("start", [0x3F800000, 0x00000000, 0x007FFFC0, 0x7F7FFF00])
def test_votes_tell_values_apart_that_differ_in_their_last_bits_alone(n: int, kind: str, start: int, isa: str) -> None:
    # Around 1 and 0, where subnormal numbers begin and before the largest: up to 128 steps of rounding, of both signs.
    generator = torch.Generator().manual_seed(n)
    bits = start + torch.randint(0, 128, (n, 300), generator=generator, dtype=torch.int32)
    x = bits.view(F32) * (torch.randint(0, 2, (n, 300), generator=generator) * 2 - 1)
    x[:, 100:200] = x[:, 100:200].abs()
    x[:, 200:] = x[:, 200:].abs() + torch.randn(n, 100, generator=generator).where(
        torch.arange(n)[:, None] > n // 2, 0.0
    )
    votes = draw_votes(n, kind)
    total = int(votes.sum())
    wanted, _ = reference.trim(x.double(), (total - 1) // 2, total // 2 + 1, votes=votes, compute=F64)
    got, alarm = cpu.trim(x, (total - 1) // 2, total // 2 + 1, votes=votes, compute=F32, isa=isa)
    assert not alarm
    assert bool(((got.double() - wanted).abs() <= wanted.abs() * 2**-24 + 2.0**-149).all())  # of a midpoint's rounding
    for lo, hi in ((total // 5, total - total // 5), (0, 1), (total - 1, total)):
        wanted, _ = reference.trim(x.double(), lo, hi, votes=votes, compute=F64)
        got, _ = cpu.trim(x, lo, hi, votes=votes, compute=F32, isa=isa)
        close = 0 if hi - lo == 1 else 1e-6 * float(x.double().abs().max()) + 2.0**-140  # values of both signs cancel
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=close)
    if start < 0x7F000000:
        got_spread, wanted_spread = (
            pass_(y, votes=votes, compute=y.dtype).spread
            for pass_, y in ((partial(cpu.sketch, isa=isa), x), (reference.sketch, x.double()))
        )
        torch.testing.assert_close(got_spread, wanted_spread, rtol=1e-4, atol=1e-80)


@pytest.mark.parametrize("n", [5, 20, 40])
def test_rows_without_votes_change_nothing(n: int, isa: str) -> None:
    x, votes = draw(n, 700), draw_votes(n, "sizes") + 1
    total = int(votes.sum())
    more, given = torch.cat([x[:2] * 3, x, -x[:3]]), torch.cat([votes[:2] * 0, votes, votes[:3] * 0])
    for lo, hi in ((total // 4, total - total // 4), ((total - 1) // 2, total // 2 + 1)):
        one, other = (cpu.trim(y, lo, hi, votes=v, compute=F32, isa=isa)[0] for y, v in ((x, votes), (more, given)))
        assert torch.equal(one, other)
        counts = cpu.shares(more, lo, hi, votes=given, compute=F32, isa=isa)
        assert torch.equal(counts[2 : n + 2], cpu.shares(x, lo, hi, votes=votes, compute=F32, isa=isa))
        assert not counts[:2].any() and not counts[n + 2 :].any()
    plain, found = (cpu.sketch(y, votes=v, compute=F32, isa=isa) for y, v in ((x, votes), (more, given)))
    assert torch.equal(plain.median, found.median) and torch.equal(plain.spread, found.spread)
    check_sketch(found, reference.sketch(more, votes=given, compute=F32))


@pytest.mark.parametrize("n", [4, 20, 35])
def test_mixed_rows_have_votes_too(n: int, isa: str) -> None:
    mix = dense(n + 3, n)
    votes, x = draw_votes(n + 3, "sizes"), draw(n, 1031)
    total = int(votes.sum())
    got = cpu.sketch(x, mix=mix, anchors=[None], votes=votes, compute=F32, isa=isa)
    check_sketch(got, reference.sketch(x, mix=mix, anchors=[None], votes=votes, compute=F32), exact=False)
    for lo, hi in ((total // 4, total - total // 4), ((total - 1) // 2, total // 2 + 1)):
        value = cpu.trim(x, lo, hi, mix=mix, votes=votes, compute=F32, isa=isa)
        check_value(value, reference.trim(x, lo, hi, mix=mix, votes=votes, compute=F32))


def test_votes_bear_the_largest_numbers_and_show_what_is_not_finite(isa: str) -> None:
    votes = torch.tensor([3, 1, 4, 1, 5])
    for dtype in (F32, F64):
        x = torch.full((5, 40), torch.finfo(dtype).max, dtype=dtype)
        x[0] *= -1
        for lo, hi in ((6, 8), (0, 14), (3, 11)):
            value, alarm = cpu.trim(x, lo, hi, votes=votes, compute=dtype, isa=isa)
            assert bool(value.isfinite().all()) and not alarm
        for bad in (float("nan"), float("inf"), -float("inf")):
            for i in range(5):
                y = draw(5, 40, dtype)
                y[i, 7 * i] = bad
                assert not cpu.sketch(y, votes=votes, compute=dtype, isa=isa)[2][i, i].isfinite()
                assert cpu.trim(y, 6, 8, votes=votes, compute=dtype, isa=isa)[1]


def test_votes_do_not_depend_on_the_number_of_threads(isa: str) -> None:
    results = []
    x, votes = draw(11, 150_001), draw_votes(11, "sizes")
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(
            [
                *cpu.sketch(x, votes=votes, compute=F32, isa=isa)[:3],
                cpu.trim(x, 300, int(votes.sum()) - 300, votes=votes, compute=F32, isa=isa)[0],
                cpu.shares(x, 300, 900, votes=votes, compute=F32, isa=isa),
            ]
        )
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_votes_must_be_whole_numbers_one_a_row() -> None:
    for votes in (torch.ones(3, dtype=torch.int64), torch.ones(4), torch.ones(8, dtype=torch.int64)[::2]):
        with pytest.raises(ValueError, match="votes must be a whole number for each of 4 rows"):
            cpu.sketch(draw(4, 5), votes=votes, compute=F32)


@pytest.mark.parametrize("n", [4, 600])
def test_somebody_must_have_votes(n: int, isa: str) -> None:
    with pytest.raises(ValueError, match=f"votes must hold one that is not 0, got 0 for each of {n} rows"):
        cpu.sketch(draw(n, 5), votes=torch.zeros(n, dtype=torch.int64), compute=F32, isa=isa)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 90])
@pytest.mark.parametrize("kind", ["few", "many"])
def test_walk_with_votes_is_the_loop_of_the_rules(n: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(n + 2, 50, dtype=F64, generator=torch.Generator().manual_seed(n))
    x[: n // 4] *= 10
    votes, gram = draw_votes(n, kind), x @ x.T
    total = int(votes.sum())
    for f in {0, total // 7, (total - 1) // 2}:
        sketch = Sketch(
            gram, torch.tensor(30.0, dtype=F64), n, f, ("origin", "last"), 2.0**-20, votes=votes, total=total
        )
        for rule in (TQ(), Huber(iterations=3), CC(tau=3.3, iterations=5), RFA(smoothing=0.3), MCA(), MCA(sigma=2.5)):
            got = rule.weights(sketch)
            with monkeypatch.context() as patch:
                patch.setattr(kernels, "walk", lambda *a, **k: None)
                wanted = rule.weights(sketch)
            torch.testing.assert_close(got.coefficients, wanted.coefficients, rtol=1e-9, atol=1e-12)
            if wanted.tau is not None:
                torch.testing.assert_close(got.tau, wanted.tau)
                assert torch.equal(got.outside, wanted.outside)
