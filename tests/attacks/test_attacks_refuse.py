"""What an attack refuses, and the sentence it says."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from robagg.attacks import BF, GA, IPM, LF, MIMIC, Mixed, parse
from robagg.attacks.base import View


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ga(variance=-1)", "variance must be a finite number > 0, got -1"),
        ("ga(variance=0)", "variance must be a finite number > 0, got 0"),
        ("ga(variance='loud')", "variance must be a finite number, got 'loud'"),
        ("ga(variance=True)", "variance must be a finite number, got True"),
        ("alie(z='x')", "z must be a finite number, got 'x'"),
        ("alie(z=inf)", "z must be a finite number, got inf"),
        ("ipm(c0=nan)", "c0 must be a finite number, got nan"),
        ("ipm(c0='x')", "c0 must be a finite number, got 'x'"),
        ("signflip(scale=0)", "scale must be a finite number > 0, got 0"),
        ("minmax(along='median')", "along must be one of mean, std, sign, got 'median'"),
        ("minsum(scale=nan)", "scale must be a finite number, got nan"),
        ("heap(distance='far')", "distance must be a finite number, got 'far'"),
        ("heap(period=-1)", "period must be a finite number >= 0, got -1"),
        ("heap(period=0.5)", "period must be 0 or at least 1 round, got 0.5"),
        ("heap(jitter=-1)", "jitter must be a finite number >= 0, got -1"),
        ("groups(groups=0)", "groups must be a whole number >= 1, got 0"),
        ("groups(side=-0.5)", "side must be a finite number >= 0, got -0.5"),
        ("decoy(decoys=-1)", "decoys must be a whole number >= 0, got -1"),
        ("clones(count=0)", "count must be a whole number >= 1, got 0"),
        ("clones(of='all')", "of must be one of near, far, centre, rim, got 'all'"),
        ("bf(scale=0)", "scale must be a finite number > 0, got 0"),
        ("bf(momentum=1)", "momentum must be a number from 0 to below 1, got 1"),
        ("backdoor(target=-1)", "target must be a whole number >= 0, got -1"),
        ("backdoor(share=0)", "share must be a number above 0, got 0"),
        ("backdoor(size=0)", "size must be a whole number >= 1, got 0"),
        ("backdoor(scale=None)", "scale must be a finite number, got None"),
        ("dba(scale=None)", "scale must be a finite number, got None"),
        ("neurotoxin(scale=None)", "scale must be a finite number, got None"),
        ("dba(parts=0)", "parts must be a whole number >= 1, got 0"),
        ("replacement(scale=0)", "scale must be a finite number > 0, got 0"),
        ("neurotoxin(top=2)", "top must be a number from 0 to 1, got 2"),
        ("neurotoxin(momentum=1)", "momentum must be a number from 0 to below 1, got 1"),
        ("optimal(aim='up')", "aim must be one of far, against, signs, either, got 'up'"),
        ("optimal(family='bf')", "family must be one of ipm, alie, mean, signs, main, got 'bf'"),
        ("optimal(jitter=-1)", "jitter must be a finite number >= 0, got -1"),
        ("mimic(warmup=0)", "warmup must be a whole number >= 1, got 0"),
        ("mimic(warmup=1.5)", "warmup must be a whole number >= 1, got 1.5"),
        ("nonfinite(value='big')", "value must be one of mixed, nan, inf, -inf, got 'big'"),
        ("mixed(attacks='ipm+lff')", "unknown attack 'lff' (did you mean 'lf'?)"),
        ("mixed(attacks='ipm++lf')", "attack must be written name or name(parameter=value, ...), got ''"),
        ("mixed(attacks='')", "attacks must be a text such as \"ipm+lf\", got ''"),
        ("mixed(attacks=3)", 'attacks must be a text such as "ipm+lf", got 3'),
        ("mixed(attacks='ipm(c0=\"x\")')", "c0 must be a finite number, got 'x'"),
        ("alien", "unknown attack 'alien' (did you mean 'alie'?)"),
    ],
)
def test_bad_parameters_say_what_was_wanted_and_what_came(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse(text)


def test_one_attack_has_one_text() -> None:
    assert str(parse("alie(z=1)")) == str(parse("ALIE(z=1.0)")) == "alie(z=1.0)"
    assert str(Mixed("IPM(c0=1) + label-flipping")) == "mixed(attacks='ipm(c0=1.0)+lf')"
    assert str(Mixed("GA+alie + BF+ipm+lf+mimic")) == "mixed"
    assert str(IPM(c0=np.int64(3))) == "ipm(c0=3.0)"  # type: ignore[arg-type]
    assert str(GA(variance=np.float32(3))) == "ga(variance=3.0)"  # type: ignore[arg-type]
    assert repr(MIMIC(warmup=np.int64(2))) == "MIMIC(warmup=2, client=None)"  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", [BF(), LF(), Mixed("ga+bf")], ids=str)
def test_who_needs_gradients_says_so(attack: BF | LF | Mixed) -> None:
    with pytest.raises(ValueError, match=r"own must be the gradients that \w+ sends, got None"):
        attack.craft(View(torch.ones(3, 2), None, n=5, f=2), {})


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (torch.tensor([0.5, 1.0]), "labels must be integers, got torch.float32"),
        (torch.tensor([0, 3]), "labels must be from 0 to 2, got 0 to 3"),
        (torch.tensor([-1, 2]), "labels must be from 0 to 2, got -1 to 2"),
    ],
)
def test_lf_refuses_labels_it_cannot_turn_round(y: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LF().poison(torch.zeros(2, 1), y, classes=3, k=0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"honest": 1.0}, "honest rows must be real numbers of shape (h, d), got torch.float32 ()"),
        ({"honest": [[1.0, 2.0], [3.0]]}, "honest rows must be a tensor or array (h, d), got list: "),
        ({"f": 1.5}, "f must be a whole number >= 0, got 1.5"),
        ({"f": -1}, "f must be a whole number >= 0, got -1"),
        ({"own": np.ones(2)}, "own gradients must be real numbers of shape (f, d), got torch.float64 (2,)"),
        (
            {"own": torch.ones(1, 2) * 1j},
            "own gradients must be real numbers of shape (f, d), got torch.complex64 (1, 2)",
        ),
    ],
)
def test_a_call_says_what_it_wanted_and_what_came(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        IPM()(**{"honest": torch.ones(3, 2), **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("own", [np.array([[1.0, -2.0]]), torch.tensor([[1, -2]]), [[1.0, -2.0]]], ids=type)
def test_own_gradients_of_another_kind_become_that_of_the_rows(own: object) -> None:
    for momentum in (0.0, 0.5):
        sent = BF(momentum=momentum)(torch.ones(3, 2), own=own)
        assert sent.dtype == torch.float32
        assert sent.tolist() == [[momentum - 1, 2 - 2 * momentum]]


def test_a_view_must_fit_together() -> None:
    with pytest.raises(ValueError, match=re.escape("honest rows must have shape (h, d) with h >= 1, got (0, 3)")):
        View(torch.ones(0, 3), None, n=1, f=1)
    with pytest.raises(ValueError, match=re.escape("shape (h, d) with h >= 1, got (3,)")):
        View(torch.ones(3), None, n=4, f=1)
    with pytest.raises(ValueError, match=re.escape("floating point, got torch.int64")):
        View(torch.ones(2, 3, dtype=torch.int64), None, n=3, f=1)
    with pytest.raises(ValueError, match=re.escape("own gradients must have shape (1, 3), got (2, 3)")):
        View(torch.ones(2, 3), torch.ones(2, 3), n=3, f=1)
    with pytest.raises(ValueError, match=re.escape("f must be a number from 0 to n=2, got 3")):
        View(torch.ones(2, 3), None, n=2, f=3)
