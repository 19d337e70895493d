"""What everybody's rules, pre-aggregators and attacks are held to: named where they fail, looked at in what they give.

What the package itself defines raises what it means to raise, and its answers are taken as they are: tests look at
them. An exception of a user's own method becomes a `PluginError`, one sentence with the object's text and the method in
it. What a user's own class gives back is looked at where the host may be asked. On a device it may not: there a wrong
answer sets the alarm, and the call is done again where it may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from robagg._core.checks import is_whole
from robagg._core.outcome import Outcome, Treatment, Weights
from robagg._core.passes import Passes
from robagg._core.sketch import AlarmError, Sketch
from robagg._core.tolerance import QuorumError

CLOSE = 1e-4
"""How far from one a sum of parts may be: a thousand of them in float32 are 6e-5 off."""


class PluginError(RuntimeError):
    """A rule, a pre-aggregator, an attack, a task or a split of a user's own failed, or gave what cannot be used.

    The message names it; what it raised itself is the cause (`__cause__`).
    """


def is_ours(made: Any) -> bool:
    """Whether the package itself defines a class or a function."""
    return bool(made.__module__.startswith("robagg."))


class Attribution:
    """In its block an exception of a method that the package does not define becomes a PluginError with its name.

    "mine(f=2): weights raised ZeroDivisionError: division by zero"
    """

    __slots__ = ("method", "thing")

    def __init__(self, thing: Any, method: str) -> None:
        self.thing, self.method = thing, method

    def __enter__(self) -> None:
        """Nothing is done before something fails: this stands in the path of every call."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, Exception) or isinstance(error, AlarmError | PluginError | QuorumError):
            return
        if not is_ours(getattr(type(self.thing), self.method)):  # what ours refuse is the caller's doing
            raise PluginError(f"{self.thing}: {self.method} raised {type(error).__name__}: {error}") from error


def read_weights(rule: Any, answer: Any, sketch: Sketch, passes: Passes, *, rest: bool) -> Tensor:
    """The coefficients (n+a,) in float64 that a rule gives; with `rest`, what they leave of one is the median's."""
    if is_ours(type(rule)):
        return answer.coefficients.double()  # type: ignore[no-any-return]
    if not isinstance(answer, Weights):
        raise PluginError(f"{rule}: weights must return robagg.Weights, got {describe(answer)}")
    size = len(sketch.gram)
    check_tensor(rule, f"a coefficient for each of {size} rows and anchors", answer.coefficients, (size,))
    for name, shape in (("tau", ()), ("outside", (sketch.n,)), ("reach", (sketch.n,))):
        if (value := getattr(answer, name)) is not None:
            check_tensor(rule, f"Weights.{name} of shape {shape}", value, shape)
    if not isinstance(answer.treatment, Treatment):
        raise PluginError(f"{rule} must give Weights.treatment as a robagg.Treatment, got {describe(answer.treatment)}")
    coefficients = answer.coefficients.double()
    least = 0.0 if rest else 1.0
    if passes.asks:
        total = sum(coefficients.tolist())
        if not math.isfinite(total) and not passes.wide:
            raise AlarmError
        if not least - CLOSE <= total <= 1 + CLOSE:
            wanted = "from 0 to 1 (the rest is the median's)" if rest else "of 1"
            raise PluginError(f"{rule}: the coefficients must be finite with a sum {wanted}, got {total:g}")
    else:
        total = coefficients.sum()
        passes.raise_alarm(~((total >= least - CLOSE) & (total <= 1 + CLOSE)))
    return coefficients


def read_matrix(mixer: Any, matrix: Any, count: int, passes: Passes) -> Tensor:
    """The matrix (m, n+a) that a pre-aggregator gives, for `count` rows behind it."""
    if is_ours(type(mixer)):
        return matrix  # type: ignore[no-any-return]
    width = passes.n + len(passes.anchors)
    what = f"a matrix of {count} rows and a column for each of {width} rows and anchors"
    check_tensor(mixer, what, matrix, (count, width))
    sums = matrix.double().sum(dim=1)
    if passes.asks:
        if not bool(((sums - 1).abs() <= CLOSE).all()):
            if not passes.wide and not bool(torch.isfinite(sums).all()):
                raise AlarmError
            far = sums[(sums - 1).abs().nan_to_num(torch.inf, torch.inf).argmax()]
            raise PluginError(f"{mixer}: each row of the matrix must be finite with a sum of 1, got {float(far):g}")
    else:
        passes.raise_alarm(~((sums - 1).abs() <= CLOSE).all())
    return matrix  # type: ignore[no-any-return]


def read_range(rule: Any, answer: Any, n: int) -> tuple[int, int]:
    """The range lo..hi-1 of n sorted values that a rule keeps."""
    if is_ours(type(rule)):
        return answer  # type: ignore[no-any-return]
    if isinstance(answer, tuple | list) and len(answer) == 2 and all(map(is_whole, answer)):
        lo, hi = map(int, answer)
        if 0 <= lo < hi <= n:
            return lo, hi
    raise PluginError(f"{rule}: kept must return whole numbers 0 <= lo < hi <= {n}, got {answer!r}")


def check_outcome(rule: Any, outcome: Any, passes: Passes) -> None:
    """Refuse what `solve` of a user's own gives where it is no value of the rows' length; not finite is an alarm."""
    if not isinstance(outcome, Outcome):
        raise PluginError(f"{rule}: solve must return robagg's Outcome, got {describe(outcome)}")
    if not isinstance(outcome.values, Sequence) or len(outcome.values) != len(passes.leaves):
        raise PluginError(f"{rule}: solve must give {len(passes.leaves)} values, got {describe(outcome.values)}")
    for value, rows in zip(outcome.values, passes.leaves, strict=True):
        check_tensor(rule, f"a value of shape {tuple(rows[0].shape)}", value, tuple(rows[0].shape))
    if outcome.weights is not None:
        check_tensor(rule, f"weights of shape {(passes.sent,)}", outcome.weights, (passes.sent,))
    check_tensor(rule, "an alarm of shape ()", outcome.alarm, ())
    finite = ~passes.agree(~torch.stack([torch.isfinite(value).all() for value in outcome.values]).all())
    if not passes.asks:
        outcome.alarm.logical_or_(~finite)
    elif not bool(finite):
        if not passes.wide:
            raise AlarmError
        raise PluginError(f"{rule}: solve must give a finite value, got NaN or Inf in it")


def check_tensor(thing: Any, what: str, value: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is no tensor of that shape."""
    if not isinstance(value, Tensor):
        raise PluginError(f"{thing} must give {what} as a tensor, got {describe(value)}")
    if value.shape != shape:
        raise PluginError(f"{thing} must give {what}, got shape {tuple(value.shape)}")


def describe(value: Any) -> str:
    """What came, in a word or two."""
    return "None" if value is None else type(value).__name__
