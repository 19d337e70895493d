"""Orderings on made-up means: what holds, what does not, and what cannot be said."""

from __future__ import annotations

from robagg.paper.claims import Alike, Best, BestWorst, Claim, Fails, Falls, Helps, Lower, Means


def table(**rows: tuple[float, ...]) -> Means:
    return {("p", row, str(k)): value for row, values in rows.items() for k, value in enumerate(values)}


def holds(claim: Claim, means: Means) -> bool | None:
    return claim.check(means).holds


def test_best_forgives_a_point_and_names_who_is_better() -> None:
    close = Best("x").check(table(TQ=(96.0, 95.0), CM=(96.9, 90.0)))
    assert close.holds and close.evidence == "2 of 2; within a point: p 0 CM 96.9 against 96.0"
    finding = Best("TQ is best").check(table(TQ=(96.0, 85.0), CM=(90.0, 90.0)))
    assert finding.holds is False and finding.evidence == "1 of 2; not: p 1 CM 90.0 against 85.0"
    assert holds(Best("x", columns=("0",)), table(TQ=(96.0, 85.0), CM=(90.0, 90.0)))
    means = {("p", "MCA (median)", "0"): 90.0, ("p", "TQ", "0"): 80.0}
    assert holds(Best("x", rows=("Huber", "MCA")), means)


def test_the_worst_case_is_the_true_minimum() -> None:
    assert holds(BestWorst("x"), table(TQ=(80.0, 90.0), CM=(99.0, 70.0)))
    assert holds(BestWorst("x"), table(TQ=(80.0, 90.0), CM=(99.0, 85.0))) is False


def test_failing_is_ending_below_fifty() -> None:
    assert holds(Fails("x", rows=("CM",)), table(TQ=(96.0,), CM=(30.0,)))
    assert holds(Fails("x", rows=("CM",)), table(TQ=(96.0,), CM=(60.0,))) is False
    assert holds(Fails("x"), table(TQ=(96.0,), CM=(30.0,), TM=(40.0,)))


def test_alike_falling_and_helping() -> None:
    assert holds(Alike("x", rows=("TQ", "CM")), table(TQ=(96.0,), CM=(94.5,)))
    assert holds(Alike("x", rows=("TQ", "CM")), table(TQ=(96.0,), CM=(93.5,))) is False
    assert holds(Falls("x", rows=("CM",)), table(CM=(90.0, 91.0, 50.0)))
    assert holds(Falls("x", rows=("CM",)), table(CM=(90.0, 91.0, 95.0))) is False
    uneven = Falls("x", rows=("CM",)).check(table(CM=(90.0, 40.0, 80.0)))
    assert uneven.holds and "not steadily: CM 90.0, 40.0, 80.0" in uneven.evidence
    both = {("alone", "CM", "0"): 80.0, ("with NNM", "CM", "0"): 90.0}
    assert holds(Helps("x", panels=("with NNM",)), both)
    assert holds(Helps("x", panels=("with NNM",)), both | {("with NNM", "CM", "0"): 79.0}) is False
    over = {("rho=0.3", "TQ", ""): 80.0, ("rho=0.5", "TQ", ""): 70.0}
    assert holds(Falls("x", along="panels"), over)


def test_lower_compares_with_the_same_cells_of_another_experiment() -> None:
    six = {("fig8 rho=0.3", "TQ", ""): 80.0, ("fig8 rho=0.3", "CM", ""): 60.0}
    claim = Lower("x", beside="fig8")
    assert holds(claim, {**six, ("rho=0.3", "TQ", ""): 70.0, ("rho=0.3", "CM", ""): 50.0})
    risen = claim.check({**six, ("rho=0.3", "TQ", ""): 70.0, ("rho=0.3", "CM", ""): 65.0})
    assert risen.holds is False and risen.evidence == "1 of 2; not: rho=0.3 CM 60.0 to 65.0"
    alone = claim.check({("rho=0.3", "TQ", ""): 70.0})
    assert alone.holds is None and alone.evidence == "no run of fig8 rho=0.3, TQ"


def test_what_is_not_there_is_not_judged() -> None:
    assert holds(Best("x", columns=("9",)), table(TQ=(1.0,))) is None
    finding = Alike("x", rows=("TQ", "TQ_t")).check(table(TQ=(96.0,)))
    assert finding.holds is None and "TQ_t" in finding.evidence
    assert holds(BestWorst("x"), table(CM=(1.0,))) is None
    assert "cannot be said yet" in str(finding)


def test_nothing_is_settled_while_a_cell_in_question_has_no_run() -> None:
    means = {("alone", "TQ", "0"): 96.0, ("alone", "TQ", "1"): 95.0, ("alone", "CM", "0"): 90.0}
    gap = ("alone", "CM", "1")
    best = Best("x").check(means, [gap])
    assert best.holds is None and best.evidence == "so far 1 of 1; cells without a run: 1"
    assert Best("x", columns=("0",)).check(means, [gap]).holds
    own = ("with NNM", "TQ", "0")  # the row in question may be the one that is not there, in one panel of several
    for claim in (Best("x"), BestWorst("x")):
        partly = claim.check({**means, ("with NNM", "CM", "0"): 99.0}, [own])
        assert partly.holds is None and partly.evidence == "so far 1 of 1; cells without a run: 1"
    lost = Best("x").check({**means, ("alone", "CM", "0"): 99.0}, [gap])
    assert lost.holds is False and lost.evidence.endswith("99.0 against 96.0; cells without a run: 1")
    assert Best("x", panels=("alone",)).check(means, [("with NNM", "CM", "1")]).holds
    assert BestWorst("x").check(means, [gap]).holds is None
    assert Falls("x", rows=("TQ",)).check(means, [gap]).holds
    assert Falls("x").check(means, [gap]).holds is None
    assert Fails("x").check({**means, ("alone", "CM", "0"): 9.0}, [gap]).holds is None
    assert Fails("x", rows=("CM",), columns=("0",)).check({**means, ("alone", "CM", "0"): 9.0}, [gap]).holds
    both = {**means, ("with NNM", "TQ", "0"): 97.0, ("with NNM", "CM", "0"): 97.0}
    helps = Helps("x", panels=("with NNM",), columns=("0",))
    assert helps.check(both, [gap, ("with NNM", "CM", "1")]).holds
    assert helps.check(both, [("alone", "Krum", "0")]).holds is None
    assert Helps("x").check({("alone", "CM", "0"): 1.0}, [("alone", "CM", "1")]).holds is None


def test_nobody_is_best_alone() -> None:
    assert holds(Best("x"), table(TQ=(96.0, 95.0))) is None
    assert holds(BestWorst("x"), table(TQ=(96.0, 95.0))) is None
