"""Input: nothing is copied, every structure comes back, what has another structure is rejected with a reason."""

from __future__ import annotations

import math
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg._core.stack import SMALL_LEAF, read

Pair = namedtuple("Pair", ["w", "b"])


def addresses(rows: Any) -> list[int]:
    return [row.data_ptr() for row in rows]


def test_nothing_is_copied_on_the_way_in() -> None:
    x = torch.randn(4, 6)
    assert read(x).leaves[0].data_ptr() == x.data_ptr()
    assert addresses(read(list(x)).leaves[0]) == addresses(x)
    array = x.numpy()
    assert addresses(read(array).leaves[0]) == addresses(x)
    array.flags.writeable = False
    assert addresses(read(list(array)).leaves[0]) == addresses(x)
    images = [torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last) for _ in range(3)]
    assert addresses(read(images).leaves[0]) == addresses(images)
    fortran = [np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4))) for _ in range(3)]
    assert addresses(read(fortran).leaves[0]) == [a.ctypes.data for a in fortran]


def test_read_only_memory_is_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    rows = [np.frombuffer(np.arange(3.0).tobytes()) for _ in range(3)]
    assert ra.Mean()(rows).tolist() == [0.0, 1.0, 2.0]
    assert not recwarn.list


def test_memory_that_is_not_aligned_is_read_right() -> None:
    message = b"x" + np.arange(6, dtype="f4").tobytes()
    rows = [np.frombuffer(message, dtype="f4", offset=1) for _ in range(3)]
    assert ra.CM()(rows).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_sign_that_torch_keeps_as_a_flag_is_seen() -> None:
    z = torch.randn(5, 3, dtype=torch.complex64).conj().imag
    assert z.is_neg()
    plain = torch.tensor(z.tolist())
    assert torch.allclose(ra.Mean()(z), plain.mean(0))
    assert torch.allclose(ra.Mean()(list(z)), plain.mean(0))


def test_integer_leaves_get_their_lower_median_and_keep_their_dtype() -> None:
    def row(k: int) -> dict[str, Any]:
        return {
            "w": torch.full((2,), float(k)),
            "steps": torch.tensor(10 * k),
            "bytes": np.array([k, 3 - k], dtype=np.uint8),
            "mask": torch.tensor([k > 1, k > 2]),
        }

    value = ra.Mean()([row(k) for k in range(4)])
    assert value["steps"].item() == 10
    assert value["steps"].dtype == torch.int64
    assert value["steps"].shape == ()
    assert value["bytes"].tolist() == [1, 1]
    assert value["bytes"].dtype == np.uint8
    assert value["mask"].tolist() == [False, False]
    assert value["mask"].dtype == torch.bool
    broken = [row(k) for k in range(4)]
    broken[0]["w"][0] = math.nan
    assert ra.Mean()(broken)["steps"].item() == 20


def test_leaves_of_several_dtypes_each_come_back_in_their_own() -> None:
    rows = [
        {"h": torch.full((2,), k, dtype=torch.float16), "d": torch.full((1,), 1e300 * k, dtype=torch.float64)}
        for k in (1.0, 2.0, 2.1)
    ]
    for text in ("cm", "tq", "krum", "nnm >> tq"):
        value = ra.parse(text)(rows)
        assert value["h"].dtype == torch.float16
        assert value["d"].dtype == torch.float64
        assert value["h"].tolist() == pytest.approx([2.0, 2.0], rel=0.1)
        assert value["d"].tolist() == pytest.approx([2e300], rel=0.1)


def test_small_leaves_are_laid_side_by_side_and_large_ones_stay_where_they_are() -> None:
    def draw(k: int) -> dict[str, Tensor]:
        g = torch.Generator().manual_seed(k)
        return {
            "conv": torch.randn(4, 3, 2, 2, generator=g).to(memory_format=torch.channels_last),
            "large": torch.randn(SMALL_LEAF, generator=g),
            "half": torch.randn(3, generator=g).half(),
            "bias": torch.randn(5, generator=g, requires_grad=True),
            "scale": torch.randn(2, generator=g).half(),
            "empty": torch.zeros(0),
        }

    rows = [draw(k) for k in range(7)]
    stack = read(rows)
    assert {(leaf[0].dtype, len(leaf[0])) for leaf in stack.leaves} == {
        (torch.float32, 48 + 5),
        (torch.float16, 3 + 2),
        (torch.float32, SMALL_LEAF),
    }
    large = next(leaf for leaf in stack.leaves if len(leaf[0]) == SMALL_LEAF)
    assert addresses(large) == [row["large"].data_ptr() for row in rows]
    for name in rows[0]:
        alone = ra.CM()([row[name].detach().reshape(-1) for row in rows]) if rows[0][name].numel() else torch.zeros(0)
        together = ra.CM()(rows)[name]
        assert together.shape == rows[0][name].shape and together.dtype == rows[0][name].dtype
        assert torch.equal(together.reshape(-1), alone) and not together.requires_grad
    value = ra.CM()(rows)
    storages = [leaf.untyped_storage() for leaf in value.values() if leaf.numel()]
    assert len({storage.data_ptr() for storage in storages}) == len(storages)
    assert all(storage.nbytes() == leaf.nbytes for storage, leaf in zip(storages, value.values(), strict=False))
    before = ra.CC(f=2).step(rows)[1]
    assert before["conv"].shape == (4, 3, 2, 2)
    flat = [torch.cat([v.detach().float().reshape(-1) for v in row.values()]) for row in rows]
    again, _ = ra.CC(f=2).step(rows, before)
    plain, _ = ra.CC(f=2).step(flat, torch.cat([v.float().reshape(-1) for v in before.values()]))
    value = torch.cat([again.value[name].float().reshape(-1) for name in rows[0]])
    torch.testing.assert_close(value, plain.value, rtol=1e-3, atol=1e-3)


def test_what_is_wrong_is_said_of_the_first_leaf_whatever_the_hash_seed() -> None:
    counters = {"b": torch.zeros(2, dtype=torch.int64), "a": torch.zeros(2, dtype=torch.int32), "c": torch.ones(1) > 0}
    with pytest.raises(TypeError, match=r"got only torch\.int32"):
        ra.CM()([counters] * 3)


def test_dicts_tuples_and_named_tuples_come_back_as_such() -> None:
    rows = [
        OrderedDict(z=Pair(torch.ones(2) * k, (np.ones(1) * k,)), a=[{"q": torch.ones(()) * k}], none={})
        for k in (1.0, 2.0, 3.0)
    ]
    value = ra.CM()(rows)
    assert type(value) is OrderedDict
    assert list(value) == ["z", "a", "none"]
    assert type(value["z"]) is Pair
    assert type(value["z"].b) is tuple
    assert value["z"].b[0].tolist() == [2.0]
    assert value["a"][0]["q"].item() == 2.0
    assert value["none"] == {}


def test_keys_that_spell_alike_are_not_mixed_up() -> None:
    row = {"a/b": torch.zeros(2), "a": {"b": torch.ones(3)}, 0: torch.full((1,), 5.0), "0": torch.full((1,), 6.0)}
    value = ra.Mean()([row] * 3)
    assert value["a/b"].tolist() == [0, 0]
    assert value["a"]["b"].tolist() == [1, 1, 1]
    assert (value[0].item(), value["0"].item()) == (5.0, 6.0)


def test_the_order_of_keys_does_not_matter() -> None:
    rows = [{"w": torch.zeros(2), "b": torch.ones(2)}, {"b": torch.ones(2), "w": torch.zeros(2)}] * 2
    value = ra.Mean()(rows)
    assert value["w"].tolist() == [0, 0]
    assert value["b"].tolist() == [1, 1]


def test_a_nest_without_end_is_a_broken_row() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = torch.ones(2)
    for _ in range(5000):
        deep = [deep]
    verdict = ra.CM(f=2).explain([torch.ones(2)] * 4 + [loop, deep])
    assert verdict.value.tolist() == [1, 1]
    assert verdict.rejected.tolist() == [False] * 4 + [True] * 2
    assert verdict.reasons[4] == verdict.reasons[5] == "is nested 100 deep or more"


def test_too_many_strangers_are_no_quorum() -> None:
    rows: list[Any] = [torch.ones(2)] * 4 + [torch.ones(3)] * 3
    assert ra.CM(f=3)(rows).tolist() == [1, 1]
    with pytest.raises(ra.QuorumError, match=r"row 4: has its vector as tensor torch.float32 \(3,\)"):
        ra.CM(f=2)(rows)


def test_a_tie_of_structures_is_no_majority() -> None:
    with pytest.raises(ValueError, match=r"more than half .* got 2 of 4"):
        ra.CM()([torch.ones(2)] * 2 + [torch.ones(3)] * 2)


def test_rows_on_several_devices_are_refused() -> None:
    row = {"a": torch.ones(2), "b": torch.ones(2, device="meta")}
    with pytest.raises(ValueError, match="one device, got cpu, meta"):
        ra.Mean()([row] * 3)


@pytest.mark.parametrize("exponent", [-1040, -700, 0, 700, 1020])
def test_tamed_rows_have_squares_that_float64_can_hold(exponent: int) -> None:
    x = torch.randn(6, 3, dtype=torch.float64) * 2.0**-4 * 2.0**exponent
    stack, back = read(x).tamed()
    sizes = torch.stack([row.abs().max() for row in stack.leaves[0]])
    assert bool(torch.isfinite(sizes.square() * 1e9).all())
    assert bool((sizes.square() > 0).all())
    assert math.isfinite(back)
    first = stack.leaves[0][0] * back
    assert torch.allclose(first, x[0], rtol=1e-12, atol=0)


def test_tamed_liars_stay_far_and_keep_their_direction() -> None:
    x = torch.ones(5, 2, dtype=torch.float64)
    x[4] = torch.tensor([1.7e308, -1.7e308], dtype=torch.float64)
    stack, back = read(x).tamed()
    assert back == 1.0
    far = stack.leaves[0][4]
    assert 1e100 < far[0] < 1e150
    assert far[1] == -far[0]
    assert torch.equal(torch.stack(list(stack.leaves[0][:4])), x[:4])


def test_one_huge_number_copies_only_the_rows_that_have_one() -> None:
    rows = [{"w": torch.randn(SMALL_LEAF), "s": torch.randn(3).double()} for _ in range(7)]
    rows[6]["s"] *= 1e200
    stack, back = read(rows).tamed()
    large = next(leaf for leaf in stack.leaves if len(leaf[0]) == SMALL_LEAF)
    assert back == 1.0
    assert addresses(large)[:6] == [row["w"].data_ptr() for row in rows[:6]]
    wide = [{name: leaf.double() for name, leaf in row.items()} for row in rows]
    for text in ("tq", "cm", "krum", "nnm >> tq", "bucketing >> tm", "clipping >> mean", "cc"):
        generators = [torch.Generator().manual_seed(0) for _ in range(2)]
        value, wanted = [ra.parse(text, f=1)(x, generator=g) for x, g in zip((rows, wide), generators, strict=True)]
        torch.testing.assert_close(value["w"].double(), wanted["w"], rtol=1e-5, atol=1e-5)


def test_the_state_of_a_rule_follows_the_structure_not_the_layout() -> None:
    """A state saved contiguous and rows sent channels-last, with their keys in another order."""
    last = {"b": torch.tensor([-5.0, -5.0]), "w": torch.arange(16.0).reshape(1, 2, 2, 4)}
    target = {"w": last["w"].to(memory_format=torch.channels_last), "b": last["b"]}
    verdict, state = ra.CC(tau=1.0).step([target] * 3, last)
    assert torch.equal(verdict.value["w"], last["w"])
    assert torch.equal(verdict.value["b"], last["b"])
    assert list(state) == ["w", "b"]


@pytest.mark.parametrize(
    "state",
    [torch.zeros(4), torch.zeros(1, 3), np.zeros(2), 3.0, {"w": torch.zeros(3)}, torch.zeros(3, dtype=torch.int64)],
)
def test_a_state_of_another_shape_is_refused(state: Any) -> None:
    for x in (torch.randn(5, 3), list(torch.randn(5, 3))):
        with pytest.raises(ValueError, match=r"state must be shaped like a row, \(3,\)"):
            ra.CC().step(x, state)


@pytest.mark.parametrize("d", [3, 5000])
def test_a_state_on_another_device_is_refused(d: int) -> None:
    x, state = torch.randn(5, d), torch.zeros(d, device="meta")
    for rows in (x, list(x)):
        with pytest.raises(ValueError, match="state must be on cpu like the rows, got meta"):
            ra.CC().step(rows, state)
    with pytest.raises(ValueError, match="state must be on cpu like the rows, got meta in 'w'"):
        ra.CC().step([{"w": row} for row in x], {"w": state})


def test_a_mask_is_never_lost() -> None:
    masked = np.ma.masked_array(np.ones(2), mask=[False, True])
    with pytest.raises(TypeError, match=r"must have no mask.*got MaskedArray"):
        ra.CC().step(np.ones((3, 2)), masked)
    verdict = ra.CM(f=1).explain([np.ones(2), np.ones(2), np.ones(2), masked])
    assert verdict.reasons[3].startswith("has its vector as MaskedArray where an array without a mask must be")


def test_rows_are_what_they_were_in_float64_too() -> None:
    x: Tensor = torch.randn(3, 4, dtype=torch.float64)
    assert ra.Krum()([x[0], x[0], x[1]]).tolist() == x[0].tolist()
