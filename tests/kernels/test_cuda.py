"""The Triton kernels keep the promises of reference.py, in Triton's interpreter: no GPU is needed.

Triton decides when it is imported whether it interprets, so these tests run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from robagg import CC, MCA, RFA, TQ, Huber
from robagg._core.filtering import weigh_down
from robagg._core.sketch import Sketch
from robagg.kernels import cpu, cuda, cuda_filter, reference

INSIDE = os.environ.get("TRITON_INTERPRET") == "1"
F32, F64 = torch.float32, torch.float64
interpreted = pytest.mark.skipif(not INSIDE, reason="runs in the interpreter's process")


@pytest.mark.slow
@pytest.mark.skipif(INSIDE, reason="starts that process")
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_in_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__))],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def stack(kind: str, n: int, d: int) -> Tensor:
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(n * 1000 + d))
    if kind == "tied":
        return x.mul(2).round()
    if kind == "huge":
        x[: n // 3] *= 1e15
    if kind == "denormal":
        return x * 1e-40
    return x.to({"float16": torch.float16, "bfloat16": torch.bfloat16}.get(kind, F32))


def close(got: Tensor, wanted: Tensor, tolerance: float = 2e-6) -> None:
    # Denormal numbers are 1.4e-45 apart, and a sum rounds at every term.
    atol = tolerance * float(wanted.abs().max()) + 3e-44
    torch.testing.assert_close(got.double(), wanted.double(), rtol=tolerance, atol=atol)


def agrees(rows: Any, anchors: tuple[Tensor | None, ...] = (), mix: Tensor | None = None) -> None:
    """Sketch and trim of the rows are the reference's in float64, up to float32's rounding."""
    wide = [row.double() for row in rows]
    m = len(rows) if mix is None else len(mix)
    got = cuda.sketch(rows, mix=mix, anchors=anchors, compute=F32)
    wanted = reference.sketch(wide, mix=mix, anchors=anchors, compute=F64)
    pairs = [(a, b) for a, b in zip(got, wanted, strict=True) if a is not None and b is not None]
    assert len(pairs) == (3 if mix is None else 4)
    assert [a.dtype for a, _ in pairs] == [F32, F64, F64, F64][: len(pairs)]
    for part, other in pairs:
        assert part.shape == other.shape
        close(part, other)
    for lo, hi in {((m - 1) // 2, m // 2 + 1), (m // 4, m - m // 4), (0, m)}:
        value, alarm = cuda.trim(rows, lo, hi, mix=mix, compute=F32)
        close(value, reference.trim(wide, lo, hi, mix=mix, compute=F64)[0])
        assert alarm.dtype == torch.bool
        assert not alarm


@interpreted
@pytest.mark.parametrize("n", [*range(1, 21), 24, 25, 31, 32, 33, 64])
def test_every_count_of_rows(n: int) -> None:
    agrees(stack("random", n, 130))


@interpreted
@pytest.mark.parametrize("kind", ["random", "tied", "huge", "denormal", "float16", "bfloat16"])
@pytest.mark.parametrize(("n", "d"), [(5, 1), (20, 259)])
def test_every_kind_of_stack(kind: str, n: int, d: int) -> None:
    agrees(stack(kind, n, d))


@interpreted
@pytest.mark.parametrize("n", [3, 20, 62])
def test_anchors(n: int) -> None:
    agrees(stack("random", n, 200), (None, torch.randn(200)))


@interpreted
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 7), (20, 20), (25, 26), (9, 90), (40, 70)])
def test_mixed_rows(m: int, n: int) -> None:
    mix = torch.rand(m, n, dtype=F64)
    agrees(stack("random", n, 200), (None,), mix / mix.sum(dim=1, keepdim=True))


@interpreted
def test_rows_anywhere_in_memory() -> None:
    x = stack("random", 6, 300)
    mix = torch.rand(4, 6, dtype=F64)
    pieces = [x[i].clone() for i in (3, 0, 5, 1, 4, 2)]
    assert cuda._spacing(pieces)[1] < 6 or len({p.data_ptr() for p in pieces}) == 6
    for rows in (pieces, list(x), list(x.flip(0)), x[:, 7:250], x[::2], x.T.contiguous().T, [*x.T.contiguous().T]):
        agrees(rows)
    agrees(pieces, (torch.randn(300),), mix)
    agrees([torch.randn(40) for _ in range(40)])


@interpreted
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_shows(value: float) -> None:
    x = stack("random", 7, 300)
    x[4, 200] = value
    finite = torch.isfinite(cuda.sketch(x, compute=F32)[2].diagonal())
    assert not finite[4]
    assert torch.isnan(torch.tensor(value)) or int(finite.sum()) == 6  # NumPy's minimum spreads NaN, a GPU's does not
    mix = torch.full((3, 7), 1 / 7, dtype=F64)
    assert not torch.isfinite(cuda.sketch(x, mix=mix, compute=F32)[2].diagonal()).any()
    assert cuda.trim(x, 3, 4, compute=F32)[1]
    assert cuda.trim(x, 1, 2, mix=mix, compute=F32)[1]
    c = torch.ones(7, dtype=F64)
    assert cuda.combine(list(x), c, compute=F32)[1]
    c[4] = 0
    result, alarm = cuda.combine(list(x), c, compute=F32)
    assert not alarm
    close(result, x[[0, 1, 2, 3, 5, 6]].double().sum(0))


@interpreted
@pytest.mark.parametrize("n", [1, 2, 20, 64, 130])
@pytest.mark.parametrize("dtype", [F32, torch.bfloat16])
def test_combine(n: int, dtype: torch.dtype) -> None:
    x = stack("random", n, 700).to(dtype)
    c = torch.randn(n + 2, dtype=F64)
    c[n // 2] = 0
    for rows in (list(x), [row.clone() for row in x][: min(n, 100)]):
        vectors = [*rows, torch.randn(700), torch.randn(1400)[::2]]
        weights = torch.cat([c[: len(rows)], c[-2:]])
        for some in (weights, weights[:-1]):  # the last vector may have what the others leave of 1
            wanted = reference.combine([v.double() for v in vectors], some, compute=F64)[0]
            close(cuda.combine(vectors, some, compute=F32)[0], wanted)
            near = cuda.combine(x[: len(rows)], some, beside=vectors[-2:], compute=F32)[0]
            close(near, reference.combine(x[: len(rows)].double(), some, beside=vectors[-2:], compute=F64)[0])


@interpreted
@pytest.mark.parametrize("beside", [0, 1])
def test_copies_of_rows_live_until_the_kernel_is_launched(monkeypatch: pytest.MonkeyPatch, beside: int) -> None:
    """Where copies happen to lie evenly only the first is passed on; the others' memory must not be given away."""
    rows, memory = list(stack("random", 64, 5).T), torch.empty(5, 64)
    copies: list[weakref.ref[Tensor]] = []
    launches: list[Any] = []

    def copy(vector: Tensor) -> Tensor:
        copied = memory[len(copies) % 5].copy_(vector)
        copies.append(weakref.ref(copied))
        return copied

    def launch(*_: Any) -> None:
        launches.append([alive() is not None for alive in copies])
        copies.clear()

    monkeypatch.setattr(cuda, "_dense", copy)
    monkeypatch.setattr(cuda, "_launch", launch)
    cuda.sketch(rows, compute=F32)
    cuda.trim(rows, 1, 4, compute=F32)
    cuda.combine(rows[: 5 - beside], torch.ones(5), beside=rows[5 - beside :], compute=F32)
    assert launches == [[True] * 5] * 3


@interpreted
def test_combine_where_the_point_beside_lies_right_behind_the_rows() -> None:
    memory = stack("random", 8, 300)
    c = torch.cat([torch.rand(7, dtype=F64), torch.full((1,), 1e6, dtype=F64)])[:7]
    wanted = reference.combine(memory[:7].double(), c, beside=[memory[7].double()], compute=F64)[0]
    for rows, beside in ((memory[:7], [memory[7]]), ([*memory[:7]], [memory[7]]), ([*memory], []), (memory, [])):
        close(cuda.combine(rows, c, beside=beside, compute=F32)[0], wanted)
    close(cuda.combine([memory[0]], c[:0], compute=F32)[0], memory[0])
    for module in (cuda, reference):
        with pytest.raises(ValueError, match="coefficients for 8 vectors must be 7 or 8, got 6"):
            module.combine([*memory], c[:6], compute=F32)


@interpreted
@pytest.mark.parametrize(("n", "dtype", "compute"), [(65, F32, F32), (5, F64, F64), (5, F32, F64)])
def test_what_does_not_fit_takes_the_reference(n: int, dtype: torch.dtype, compute: torch.dtype) -> None:
    x = torch.randn(n, 50, dtype=dtype)
    for got, wanted in zip(cuda.sketch(x, compute=compute)[:3], reference.sketch(x, compute=compute)[:3], strict=True):
        assert torch.equal(got, wanted)
    assert torch.equal(cuda.trim(x, 1, 3, compute=compute)[0], reference.trim(x, 1, 3, compute=compute)[0])


@interpreted
@pytest.mark.filterwarnings("ignore:.*encountered in divide:RuntimeWarning")
@pytest.mark.parametrize("n", [1, 2, 5, 20, 62])
@pytest.mark.parametrize("scale", [0.0, 10.0])
def test_walk_is_the_loop(n: int, scale: float) -> None:
    x = torch.randn(n + 2, 50, dtype=F64, generator=torch.Generator().manual_seed(n))
    x[: n // 4] *= scale
    gram = x @ x.T
    walks: list[tuple[Any, float | None, int | None]] = [
        (TQ(), None, None),
        (Huber(iterations=3), None, None),
        (CC(tau=3.3, iterations=5), 3.3, 1),
        (RFA(smoothing=0.3), 0.3, 0),
        (MCA(), None, None),
        (MCA(sigma=2.5), 2.5, None),
    ]
    for f in {0, 1, (n - 1) // 2}:
        sketch = Sketch(gram, torch.tensor(30.0, dtype=F64), n, f, ("origin", "last"), 2.0**-20)
        for rule, parameter, anchor in walks:
            wanted = rule.weights(sketch)
            kind = type(rule).__name__.lower()
            got = cuda.walk(kind, gram, sketch.spread, n, f, rule.iterations, parameter, sketch.rounding, None, anchor)
            coefficients, tau, outside, reach = got
            torch.testing.assert_close(coefficients, wanted.coefficients)
            torch.testing.assert_close(reach, wanted.reach)
            if wanted.tau is None:
                assert tau is None
                assert outside is None
            else:
                torch.testing.assert_close(tau, wanted.tau)
                assert torch.equal(outside, wanted.outside)  # type: ignore[arg-type]
        if f < n:
            for mine, other in zip(cuda.neighbours(gram, n, n - f), sketch.neighbours(), strict=True):
                assert torch.equal(mine, other)
            assert torch.equal(cuda.nearest_means(gram, n, n - f), sketch.nearest_means())


@interpreted
@pytest.mark.parametrize("n", [1, 2, 5, 12, 20])
@pytest.mark.parametrize("kind", ["alike", "pulled", "far", "copies"])
def test_the_loop_of_the_filters_is_that_of_the_reference(n: int, kind: str) -> None:
    x = torch.randn(n + 1, 50, dtype=F64, generator=torch.Generator().manual_seed(n))
    f = n // 3
    x[:f] += {"pulled": 1.0, "far": 1e6}.get(kind, 0.0)
    if kind == "copies":
        x[: n // 2] = x[0].clone()
    gram, votes = x @ x.T, torch.ones(n, dtype=F64)  # the last row is an anchor
    for standout in (0.0, 3.0):
        level, steps = gram.new_tensor(standout * 50 / max(n - 1, 1)), 2 * f + (10 if f and standout else 0)
        got = cuda_filter.weigh_down(gram, votes, f, level, steps)
        wanted = weigh_down(gram[:n, :n], votes, f, level, steps)
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-7)


@interpreted
@pytest.mark.parametrize("n", [1, 2, 20, 100])
@pytest.mark.parametrize("diagonal", [1.0, 2.0**-81, torch.nan, torch.inf])
@pytest.mark.parametrize("earlier", [None, False, True])
def test_a_sketch_is_examined_as_by_the_reference(n: int, diagonal: float, earlier: bool | None) -> None:
    gram = torch.eye(n + 2, dtype=F64) * 3
    for broken in {0, n // 2, n - 1, n, n + 2}:
        gram.diagonal()[:broken] = diagonal
        for spread, square in ((5.0, None), (5.0, 1.0), (5.0, 7.0), (torch.nan, 7.0)):
            given = torch.tensor(spread, dtype=F64), None if square is None else torch.tensor(square, dtype=F64)
            alarms = [None if earlier is None else torch.tensor(earlier) for _ in range(2)]
            got, wanted = (
                module.examine(
                    gram, given[0], n=n, few=n // 2, tiny=2.0**-80, square=given[1], grain=0.9, alarm=alarms[k]
                )
                for k, module in enumerate((cuda, reference))
            )
            assert got[0].dtype == torch.bool
            for a, b in zip(got, wanted, strict=True):
                torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), equal_nan=True)
            assert alarms[0] is None or got[0] is alarms[0]


@interpreted
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_an_alarm_that_is_given_is_set_and_never_taken_back() -> None:
    x, c = stack("random", 5, 300), torch.ones(5, dtype=F64)
    for module, compute in ((cuda, F32), (cuda, F64), (cpu, F32), (reference, F32)):
        alarm = module.combine(x, c, compute=compute, alarm=torch.tensor(False))[1]
        assert not alarm
        x[3, 7] = torch.inf
        alarm = module.combine(x, c, compute=compute, alarm=alarm)[1]
        assert alarm
        x[3, 7] = 0.0
        assert module.combine(x, c, compute=compute, alarm=alarm)[1]
