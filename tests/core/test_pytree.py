"""Whatever one client sends: it decides neither the result's structure nor whether there is one nor what it costs."""

from __future__ import annotations

import io
import itertools
import tracemalloc
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg._core import pytree
from robagg._core.stack import SMALL_LEAF, read

Pair = namedtuple("Pair", ["a", "b"])


def make_row(k: float) -> dict[Any, Any]:
    g = torch.Generator().manual_seed(int(k))
    return {"w": torch.randn(3, 2, generator=g), "b": [torch.randn(2, generator=g)], "none": {}, 1: torch.ones(1) * k}


def tell_structure(node: Any) -> Any:
    """Keys in their order with their types, and containers with theirs."""
    if isinstance(node, dict):
        return type(node), [(type(key), key, tell_structure(child)) for key, child in node.items()]
    return (type(node), [tell_structure(child) for child in node]) if isinstance(node, list | tuple) else type(node)


def swap(row: dict[Any, Any], old: Any, new: Any) -> dict[Any, Any]:
    """The row with another key in the place of one."""
    return {new if key == old else key: child for key, child in row.items()}


STRANGERS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "has 'evil', which most rows lack": lambda row: row | {"evil": {}},
    "has 'evil/sub', which most rows lack": lambda row: row | {"none": {}, "evil/sub": []},
    "lacks 'none'": lambda row: {key: child for key, child in row.items() if key != "none"},
    "has 'none' as list where most have dict": lambda row: row | {"none": []},
    "has 'b' as dict where most have list": lambda row: row | {"b": {0: row["b"][0]}},
    "lacks '1'": lambda row: swap(row, 1, True),
    "has 'w' as dict where most have tensor": lambda row: row | {"w": {"w": row["w"]}},
}


@pytest.mark.parametrize("reason", STRANGERS)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_the_structure_is_that_of_most_rows_wherever_the_odd_one_stands(reason: str, place: int) -> None:
    rows = [make_row(k) for k in range(7)]
    wanted = ra.CM(f=2)([row for i, row in enumerate(rows) if i != place])
    rows[place] = STRANGERS[reason](rows[place])
    verdict = ra.CM(f=2).explain(rows)
    assert reason in verdict.reasons[place]
    assert verdict.not_believed == [place]
    assert tell_structure(verdict.value) == tell_structure(make_row(0))
    assert torch.equal(verdict.value["w"], wanted["w"])


LOOKALIKES: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "another order of keys": lambda row: dict(reversed(row.items())),
    "an ordered dict": OrderedDict,
    "a tuple for a list": lambda row: row | {"b": (row["b"][0],)},
    "a named tuple for a list": lambda row: row | {"b": namedtuple("Evil", ["x"])(row["b"][0])},
    "NumPy's strings": lambda row: {np.str_(key) if isinstance(key, str) else key: row[key] for key in row},
}


@pytest.mark.parametrize("how", LOOKALIKES)
@pytest.mark.parametrize("count", [1, 3])
def test_a_row_that_only_looks_otherwise_is_taken_and_most_rows_say_how_the_result_looks(how: str, count: int) -> None:
    rows = [make_row(k) for k in range(7)]
    wanted = ra.CM(f=2)(rows)
    rows[:count] = [LOOKALIKES[how](row) for row in rows[:count]]
    verdict = ra.CM(f=2).explain(rows)
    assert not verdict.not_believed
    assert tell_structure(verdict.value) == tell_structure(make_row(0))
    assert torch.equal(verdict.value["w"], wanted["w"])


def test_keys_of_other_kinds_come_back_as_they_were() -> None:
    row = {("a", 1): torch.ones(2), b"x": torch.zeros(1), None: torch.ones(1), 2.5: torch.ones(1), True: torch.ones(1)}
    assert list(ra.Mean()([row] * 3)) == list(row)


class Fickle(Tensor):
    """Raises at whatever is asked of it."""

    @classmethod
    def __torch_function__(cls, *args: Any, **more: Any) -> Any:
        raise KeyError("no")


class Vague:
    def __repr__(self) -> str:
        return "vague"


class Hostile(str):
    """Claims to be the key that others have, and denies it when asked."""

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


class Broken(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        raise SystemError("no")


class Leaver(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        raise SystemExit(3)


class Twice(dict):  # type: ignore[type-arg]
    """Has one key twice, with another array each time."""

    def __iter__(self) -> Any:
        self.asked = 0
        yield from ("w", "w")

    def __getitem__(self, key: Any) -> Any:
        self.asked += 1
        return torch.zeros(SMALL_LEAF if self.asked % 2 else 3)


class Endless(dict):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return map(str, itertools.count())

    def __getitem__(self, key: Any) -> Any:
        return torch.zeros(1)


class Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array that claims another shape than it has."""

    shape = property(lambda self: (SMALL_LEAF,))  # type: ignore[assignment]


def free(tensor: Tensor, size: int = 0) -> Tensor:
    tensor.untyped_storage().resize_(size)
    return tensor


UNREADABLE: dict[str, Callable[[], Any]] = {
    "a nested tensor": lambda: {"w": torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])},
    "a key too long to print": lambda: {"w": torch.zeros(SMALL_LEAF), 10**5000: torch.zeros(1)},
    "a parameter without a shape": lambda: {"w": torch.nn.UninitializedParameter()},
    "freed memory": lambda: {"w": free(torch.zeros(SMALL_LEAF))},
    "freed memory, from the middle": lambda: {"w": free(torch.zeros(SMALL_LEAF + 10)[10:])},
    "memory that was shrunk": lambda: {"w": free(torch.zeros(SMALL_LEAF), 64)},
    "a view that was shrunk": lambda: {"w": free(torch.zeros(2 * SMALL_LEAF)[::2], 4 * SMALL_LEAF)},
    "zeros without memory": lambda: {"w": torch._efficientzerotensor(SMALL_LEAF)},
    "a dict that raises": lambda: Broken(w=torch.zeros(SMALL_LEAF)),
    "keys that read alike": lambda: {"w": torch.zeros(SMALL_LEAF), Vague(): torch.zeros(1), Vague(): torch.zeros(1)},
    "keys that read alike, of other shapes": lambda: {Vague(): torch.zeros(SMALL_LEAF), Vague(): torch.zeros(1)},
    "a key that comes twice": lambda: Twice(w=0),
    "a dict that leaves": lambda: Leaver(w=torch.zeros(SMALL_LEAF)),
    "a long key": lambda: {"w": torch.zeros(SMALL_LEAF), b"x" * 2000: torch.zeros(1)},
    "few bytes seen as many": lambda: {"w": torch._neg_view(torch.zeros(1).expand(2**40))},
    "few bytes of another order seen as many": lambda: {"w": np.broadcast_to(np.zeros(1, ">f4"), (2**40,))},
    "a number": lambda: {"w": 3.0},
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("place", [0, 4])
def test_what_cannot_be_read_breaks_its_row_alone(what: str, place: int) -> None:
    rows: list[Any] = [{"w": torch.full((SMALL_LEAF,), float(k))} for k in range(5)]
    rows[place] = UNREADABLE[what]()
    verdict = ra.CM(f=1).explain(rows)
    assert verdict.not_believed == [place]
    assert len(verdict.reasons[place]) < 200
    assert list(verdict.value) == ["w"]
    rest = torch.stack([rows[k]["w"] for k in range(5) if k != place])
    assert torch.equal(verdict.value["w"], ra.CM(f=1)(rest))
    with pytest.raises((TypeError, ValueError), match=r"^row 0 "):
        ra.CM()([UNREADABLE[what]() for _ in range(5)])


def test_a_tensor_or_a_key_of_a_class_of_its_own_is_read_as_the_plain_thing_it_is() -> None:
    rows: list[Any] = [{"w": torch.full((3,), float(k))} for k in range(5)]
    rows[0] = {"w": rows[0]["w"].as_subclass(Fickle)}
    rows[1] = {Hostile("w"): rows[1]["w"]}
    value = ra.Mean()(rows)
    assert [type(key) for key in value] == [str]
    assert value["w"].tolist() == [2.0] * 3


def test_what_a_client_set_on_a_tensor_is_not_asked() -> None:
    """torch saves a tensor's attributes, and its safe loader restores them."""
    rows: list[Any] = [{"w": torch.full((4, 3), float(k))} for k in range(5)]
    rows[0]["w"].reshape = rows[0]["w"].double = 5
    file = io.BytesIO()
    torch.save(rows[0], file)
    file.seek(0)
    rows[0] = torch.load(file, weights_only=True)
    assert rows[0]["w"].reshape == 5
    for name in ("numel", "stride", "data_ptr", "detach", "is_contiguous", "abs"):
        setattr(rows[1]["w"], name, 5)
    assert ra.Mean()(rows)["w"].tolist() == [[2.0] * 3] * 4


def test_an_array_is_as_large_as_its_memory_says() -> None:
    rows: list[Any] = [{"w": np.full(SMALL_LEAF, float(k))} for k in range(5)]
    rows[0] = {"w": np.zeros(7).view(Subclass)}
    verdict = ra.CM(f=1).explain(rows)
    assert verdict.not_believed == [0] and "float64 (7,)" in verdict.reasons[0]


def test_equal_numbers_are_one_key_and_members_of_an_enumeration_stay_themselves() -> None:
    assert not ra.CM(f=1).explain([{key: torch.ones(2)} for key in (1, np.int64(1), np.uint8(1))]).not_believed
    layer = Enum("layer", {"W": "weight"}, type=str)
    assert list(ra.Mean()([{layer["W"]: torch.ones(2)}] * 3)) == [layer["W"]]
    assert type(next(iter(ra.Mean()([{layer["W"]: torch.ones(2)}] * 3)))) is layer


class Odd(int):
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class OddName(StrEnum):
    W = "w"
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize(("key", "odd"), [(1, Odd(1)), ("w", OddName.W)])
def test_no_clients_key_gets_into_the_result(key: Any, odd: Any) -> None:
    rows: list[Any] = [{odd if k == 0 else key: torch.ones(2) * k} for k in range(7)]
    value = ra.CM(f=2)(rows)
    assert [type(found) for found in value] == [type(key)]
    assert value[key].tolist() == [3.0, 3.0]


def test_arrays_that_torch_does_not_take_as_they_lie_are_copied() -> None:
    rows = [np.arange(4.0) + k for k in range(5)]
    record = np.zeros(4, [("a", "u1"), ("x", "f8")])
    record["x"] = rows[0]
    unaligned = record["x"]
    assert not unaligned.flags.aligned
    for odd in (rows[0].astype(">f8"), rows[0][::-1].copy()[::-1], unaligned):
        value = ra.CM()([odd, *rows[1:]]) if odd.dtype == rows[0].dtype else ra.CM()([x.astype(">f8") for x in rows])
        assert value.tolist() == [2.0, 3.0, 4.0, 5.0]


def double(leaf: Any, times: int) -> Any:
    for _ in range(times):
        leaf = [leaf, leaf]
    return leaf


def deepen(leaf: Any, key: str, times: int) -> Any:
    for _ in range(times):
        leaf = {key: leaf}
    return leaf


LONG_KEY = bytes(20_000)


@pytest.mark.parametrize(
    "bomb",
    [
        {"w": double(0.0, 40)},
        {"w": double(torch.ones(2), 40)},
        {"w": double({}, 40)},
        {"w": [0.0] * 2_000_000},
        {"w": [np.float64(0)] * 2_000_000},
        {"w": [{LONG_KEY: np.zeros(1)} for _ in range(4999)]},
        Endless(w=0),
        deepen(0.0, "k" * 10**6, 98),
    ],
    ids=[
        "numbers",
        "tensors",
        "dicts",
        "a long list",
        "a long list of arrays",
        "one long key",
        "no end",
        "a deep long key",
    ],
)
def test_no_nest_is_followed_much_further_than_that_of_most_rows(bomb: Any) -> None:
    rows: list[Any] = [{"w": torch.ones(2)} for _ in range(5)]
    rows[3] = bomb
    tracemalloc.start()
    verdict = ra.CM(f=1).explain(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.not_believed == [3]
    assert peak < 20e6


def test_rows_of_many_leaves_are_read_where_most_rows_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytree, "MANY", 4)
    rows: list[Any] = [[torch.ones(1) * k for k in range(100)] for _ in range(3)]
    value = ra.CM(f=1)([*rows, [torch.ones(1)] * 100_000, torch.ones(1)])
    assert [float(leaf) for leaf in value] == list(range(100))
    monkeypatch.setattr(pytree, "MOST", 40)
    with pytest.raises(TypeError, match="row 0 holds more than 40 arrays, dicts and lists"):
        ra.Mean()(rows)


@pytest.mark.parametrize(
    "row",
    [
        {"w" * 10**7: torch.ones(2)},
        {"w": torch.ones(2), "x" * 10**7: torch.ones(2)},
        {"w": np.zeros(2, [("x" * 10**6, "f4")])},
        {"w": type("X" * 10**6, (), {})()},
        {"w" * 10**7: "spam"},
    ],
)
def test_no_reason_fills_a_log(row: Any) -> None:
    verdict = ra.CM(f=1).explain([{"w": torch.ones(2)}] * 4 + [row])
    assert 0 < len(verdict.reasons[4]) < 300
    with pytest.raises(ValueError, match="more than half of the rows must have one structure") as error:
        ra.CM()([{"w": torch.ones(2)}, row])
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("place", [0, 3])
def test_one_clients_layout_copies_nobody_elses_rows_and_is_not_the_results(place: int) -> None:
    rows = [{"w": torch.randn(4, 8, 16, 32)} for _ in range(5)]
    plain = ra.CM()(rows)
    rows[place] = {"w": rows[place]["w"].to(memory_format=torch.channels_last)}
    leaf = read(rows).leaves[0]
    assert [leaf[k].data_ptr() == rows[k]["w"].data_ptr() for k in range(5)] == [k != place for k in range(5)]
    value = ra.CM()(rows)
    assert value["w"].is_contiguous()
    assert torch.equal(value["w"], plain["w"])
    even = [row["w"] for row in rows[:2]]
    even = [even[0].to(memory_format=torch.channels_last), even[1].contiguous()]
    assert ra.Mean()(even).is_contiguous()
