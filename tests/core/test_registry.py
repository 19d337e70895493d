"""Names, text and plugins: what is in the folders is found, what is not says what there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robagg as ra
from robagg._core.registry import Registry, fold, split_call
from robagg._core.rule import stages
from robagg._core.sorted import SortedRule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Average", ra.Mean()),
        ("Median", ra.CM()),
        ("TrMean(f=2)", ra.TM(f=2)),
        ("GeometricMedian", ra.RFA(iterations=3)),
        ("GeometricMedian(0.2, T=5)", ra.RFA(smoothing=0.2, iterations=5)),
        ("TrMean(1)", ra.TM(f=1)),
        ("Krum(2)", ra.Krum(f=2)),
        ("CenteredClipping(None, 3)", ra.CC(iterations=3, tau=100.0)),
        ("CenteredClipping(tau=2.5)", ra.CC(tau=2.5)),
        ("multi_krum", ra.MultiKrum()),
        ("Multi-Krum(f=2)", ra.MultiKrum(f=2)),
        (" multi krum ( f = 2 ) ", ra.MultiKrum(f=2)),
        ("tq()", ra.TQ()),
        ("tq(f=none)", ra.TQ()),
        ("TQ(f=None)", ra.TQ()),
        ("mca(sigma=1e-3)", ra.MCA(sigma=1e-3)),
    ],
)
def test_names_that_people_know_are_understood(text: str, rule: Any) -> None:
    assert ra.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tqq", r"unknown .*'tqq' \(did you mean 'tq'\?\); there are: arc, bucketing, bulyan, caf, cc, .*tq"),
        ("xyzzy(f=2)", "unknown .*'xyzzy'; there are: arc, bucketing"),
        (
            "tq(iteration=3)",
            r"unknown parameter of tq 'iteration' \(did you mean 'iterations'\?\); .*floor, iterations",
        ),
        ("tq(6, 7, True, 8)", "tq must get at most 3 values by place, got 4"),
        ("tq(f=6", "name"),
        ("tq)f=6(", "name"),
        ("tq(f=6)(f=7)", "name"),
        ("tq(f=6) + 1", "name"),
        ("tq(f=1, f=2)", "name"),
        ("tq(**{'f': 1})", "name"),
        ("tq(f=open('x'))", "name"),
        ("tq(f=-'x')", "name"),
        ("tq.f", "name"),
        ("", "name"),
        ("3", "name"),
        ("nnm >> ", "name"),
        ("nnm", "a chain must end in a rule, got the pre-aggregator nnm"),
        ("tq >> nnm", "what stands before >> must be a pre-aggregator, got the rule tq"),
        ("tq >> cm", "what stands before >> must be a pre-aggregator, got the rule tq"),
    ],
)
def test_text_that_does_not_read_says_why(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ra.parse(text)


@pytest.mark.parametrize("text", [None, 3, ["tq"], b"tq"])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(TypeError, match="must be given as text"):
        ra.parse(text)


def test_a_given_f_goes_to_every_part_that_does_not_name_its_own() -> None:
    rule = ra.parse("bucketing >> nnm(f=1) >> tq(iterations=20)", f=6)
    assert rule == ra.Bucketing() >> ra.NNM(f=1) >> ra.TQ(f=6, iterations=20)
    assert str(rule) == "bucketing >> nnm(f=1) >> tq(f=6, iterations=20)"


@pytest.mark.parametrize("f", [np.int64(3), np.float64(0.25), np.float32(0.25), np.uint8(2)])
def test_numpy_numbers_read_back(f: Any) -> None:
    rule = ra.NNM(f=f) >> ra.TQ(f=f)
    assert ra.parse(str(rule)) == rule


@given(
    tau=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    iterations=st.integers(1, 10**9),
    f=st.one_of(st.none(), st.integers(0, 10**9), st.floats(0, 0.5, exclude_max=True)),
)
def test_any_parameters_read_back(tau: float, iterations: int, f: Any) -> None:
    rule = ra.Clipping(norm=tau) >> ra.CC(f=f, tau=tau, iterations=iterations)
    assert ra.parse(str(rule)) == rule


@given(name=st.text(max_size=12), value=st.text(max_size=12))
def test_any_text_reads_or_is_a_value_error(name: str, value: str) -> None:
    for text in (name, f"{name}({value})", f"tq(f={value})", f"tq({value})"):
        try:
            split_call(text, "rule")
        except ValueError as error:
            assert "wanted" in str(error) or "written" in str(error)  # noqa: PT017


def test_constants_are_read_in_any_case() -> None:
    name, values = split_call("x(a=inf, b=-Inf, c=NONE, d=true, e='s', g=[1, -2])", "thing")
    assert name == "x"
    assert values == {"a": math.inf, "b": -math.inf, "c": None, "d": True, "e": "s", "g": [1, -2]}


def test_a_class_of_ones_own_is_found_by_its_name_until_removed() -> None:
    @dataclass(frozen=True)
    class LowMedian(SortedRule):
        f: int | float | None = None
        aliases = ("Lowest-Half",)

        def kept(self, n: int, f: int) -> tuple[int, int]:
            return (n - 1) // 2, (n - 1) // 2 + 1

    stages.add(LowMedian)
    try:
        rule = ra.parse("nnm >> low_median", f=1)
        assert rule == ra.NNM(f=1) >> LowMedian(f=1)
        assert ra.parse("lowest_half") == LowMedian()
        assert ra.parse(str(rule)) == rule
        assert LowMedian()(np.array([[1.0], [2.0], [3.0], [4.0]])).tolist() == [2.0]
        stages.add(LowMedian)
    finally:
        stages.remove("lowmedian")
    with pytest.raises(ValueError, match="unknown"):
        ra.parse("lowmedian")


def test_a_name_that_is_taken_and_a_class_of_another_kind_are_refused() -> None:
    @dataclass(frozen=True)
    class Median(SortedRule):
        f: int | float | None = None

        def kept(self, n: int, f: int) -> tuple[int, int]:
            return 0, n

    with pytest.raises(ValueError, match="named 'median' already"):
        stages.add(Median)
    for wrong in (int, ra.TQ(), "tq"):
        with pytest.raises(TypeError, match="must be a subclass of Stage"):
            stages.add(wrong)  # type: ignore[arg-type]


def test_what_the_package_holds_cannot_be_removed() -> None:
    stages.remove("tq")
    assert stages.find("tq") is ra.TQ


def test_abstract_and_private_classes_are_not_listed() -> None:
    found = Registry("rule", ra.Rule, "robagg.rules").classes()
    assert list(found) == sorted(found)
    assert "loop" not in found
    assert set(found.values()) == {c for c in stages.classes().values() if issubclass(c, ra.Rule)}


@given(st.text(alphabet="abAB-_ ", max_size=10))
def test_case_and_separators_do_not_matter(name: str) -> None:
    assert fold(name) == fold(name.upper()) == fold(name.replace("_", "-")) == fold(f" {name} ")
