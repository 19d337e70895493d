"""How far a rule may be moved: kappa in |R(X) - xbar|^2 <= kappa (1/h) sum over the honest |x_i - xbar|^2."""

from __future__ import annotations

import math

from robagg._core.rule import Rule, parse
from robagg.mixers import NNM
from robagg.rules import CC, CM, RFA, TM, TQ, Huber, Krum
from robagg.theory.numbers import check_at_least_zero, check_counts, check_delta


def kappa(rule: str | Rule, n: int, f: int) -> float | None:
    """The paper's kappa of a rule for n rows of which f are Byzantine; None where the paper's comparison gives none.

    A rule with a tolerance of its own (`tq(f=8)`) has the kappa of that tolerance (Theorem 4: robust as long
    as it is at least f), or none where it is smaller than f. NNM in front makes it `kappa_behind_nnm`.

    Args:
        rule: a rule, or its text.
        n: rows.
        f: how many of them are Byzantine.

    Example:
        >>> round(kappa("tq", n=20, f=6), 3)
        14.374
        >>> kappa("tq(f=8)", n=20, f=6) > kappa("tq", n=20, f=6)
        True
        >>> print(kappa("mca", n=20, f=6))
        None
    """
    check_counts(n, f)
    chain = parse(rule, f=int(f))
    tolerances = [stage.resolve_f(n) if isinstance(stage, USE_F) else int(f) for stage in chain.stages]
    formula = next((formula for cls, formula in FORMULAS.items() if type(chain.core) is cls), None)
    if formula is None or min(tolerances) < f or any(not isinstance(mixer, NNM) for mixer in chain.mixers):
        return None
    value = formula(tolerances[-1] / n)
    for own in reversed(tolerances[:-1]):
        value = kappa_behind_nnm(value, own / n)
    return value


def kappa_tq(delta: float) -> float:
    """TQ, Huber and CC: 4 delta / (1 - 2 sqrt(delta (1-delta))), for the true tau.

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> round(kappa_tq(0.25), 3)
        7.464
    """
    delta = check_delta(delta)
    return 4 * delta / (1 - 2 * math.sqrt(delta * (1 - delta)))


def kappa_cm(delta: float) -> float:
    """CM and RFA: 4 (1 + delta/(1-2 delta))^2.

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> kappa_cm(0.25)
        9.0
    """
    delta = check_delta(delta)
    return 4 * (1 + delta / (1 - 2 * delta)) ** 2


def kappa_tm(delta: float) -> float:
    """TM: 6 delta/(1-2 delta) (1 + delta/(1-2 delta)).

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> kappa_tm(0.25)
        4.5
    """
    delta = check_delta(delta)
    return 6 * delta / (1 - 2 * delta) * (1 + delta / (1 - 2 * delta))


def kappa_krum(delta: float) -> float:
    """Krum: 6 + 6 delta/(1-2 delta).

    Args:
        delta: share of Byzantine rows.

    Example:
        >>> kappa_krum(0.25)
        9.0
    """
    delta = check_delta(delta)
    return 6 + 6 * delta / (1 - 2 * delta)


def kappa_behind_nnm(kappa: float, delta: float) -> float:
    """A rule behind NNM: 8 delta/(1-delta) (1 + kappa).

    Args:
        kappa: that of the rule alone.
        delta: share of Byzantine rows.

    Example:
        >>> round(kappa_behind_nnm(9.0, 0.05), 3)
        4.211

    References:
        Allouah et al.: Fixing by Mixing, AISTATS 2023, arXiv:2302.01772.
    """
    delta = check_delta(delta)
    check_at_least_zero(kappa=kappa)
    return 8 * delta / (1 - delta) * (1 + kappa)


def nnm_improves(kappa: float, delta: float) -> bool:
    """Whether NNM makes a rule's kappa smaller: delta < kappa/(8 + 9 kappa).

    The threshold stays below 1/9 however bad the rule is.

    Args:
        kappa: that of the rule alone.
        delta: share of Byzantine rows.

    Example:
        >>> nnm_improves(9.0, 0.05), nnm_improves(9.0, 0.2)
        (True, False)
    """
    delta = check_delta(delta)
    check_at_least_zero(kappa=kappa)
    return delta < kappa / (8 + 9 * kappa)


def least_kappa(n: int, f: int) -> float:
    """What no rule can go below: delta/(1-2 delta) = f/(n-2f).

    f honest rows at 1 and the others at 0, or the f at 1 are the Byzantine ones: the same stack, so a rule must answer
    both.

    Args:
        n: rows.
        f: how many of them are Byzantine.

    Example:
        >>> least_kappa(11, 5)
        5.0

    References:
        Allouah et al.: Fixing by Mixing, AISTATS 2023, arXiv:2302.01772.
    """
    check_counts(n, f)
    return f / (n - 2 * f)


FORMULAS = {
    TQ: kappa_tq,
    Huber: kappa_tq,
    CC: kappa_tq,
    CM: kappa_cm,
    RFA: kappa_cm,
    TM: kappa_tm,
    Krum: kappa_krum,
}
"""The paper's comparison table. MCA has none there; Mean can have none."""

USE_F = (TQ, Huber, TM, Krum, NNM)
"""What computes with f; the others carry it for broken rows only."""
