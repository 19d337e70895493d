"""One round's decision: the rule's value with its report, or the reason why the model is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from robagg._core.rule import Rule
from robagg._core.stage import find_in_force
from robagg._core.tolerance import QuorumError
from robagg.server.combine import Combined, combine
from robagg.server.model import Model, UnfitError
from robagg.server.quote import quote_end
from robagg.server.report import RoundReport, report_skip, report_verdict
from robagg.server.screen import Replies


def decide(
    rule: Rule,
    model: Model,
    replies: Replies,
    *,
    min_valid_replies: int = 1,
    allow_unprotected: bool = True,
    **options: Any,
) -> tuple[Combined | None, RoundReport]:
    """The rule's value with its report; None with a report that says why there is none. It does not raise.

    Args:
        rule: the rule.
        model: what the replies started from.
        replies: those of the round.
        min_valid_replies: with fewer sound ones there is no value.
        allow_unprotected: whether a value counts where the f in force is 0 and more was asked. It always does where as
            many replies are broken as may be Byzantine: one broken client of three cannot stop the other two.
        options: those of `combine`.
    """
    if len(replies.sound) < min_valid_replies:
        report = report_skip(rule, replies, "")
        sound = report.answered - len(report.rejected)
        return None, replace(report, skipped=_describe_few(sound, min_valid_replies))
    try:
        combined = combine(rule, model, replies.given, **options)
    except (QuorumError, ValueError) as error:
        why, _, _ = str(error).partition(" (row ")  # the report names clients
        return None, report_skip(rule, replies, why)
    except Exception as error:  # a rule of somebody's own costs the round, not the run
        return None, report_skip(rule, replies, f"{rule} failed: {type(error).__name__}: {quote_end(error)}")
    report = replace(report_verdict(rule, replies, combined.verdict, combined.aside), gram=combined.gram)
    sound = sum(client.distance is not None for client in report.clients)
    if sound < min_valid_replies:
        return None, replace(report, skipped=_describe_few(sound, min_valid_replies))
    if report.unprotected and not (allow_unprotected or _finds_all(rule, report)):
        return None, replace(report, skipped=f"{report.unprotected}; allow_unprotected=True takes its value")
    return combined, report


def decide_without(
    kept_out: Mapping[str, UnfitError],
    look: Callable[[Mapping[str, Any]], Replies],
    weigh: Callable[[Replies], list[float] | None],
    rule: Rule,
    model: Model,
    replies: Mapping[str, Any],
    **options: Any,
) -> tuple[Combined | None, Replies, RoundReport]:
    """The decision on the replies that `look` screens and `weigh` weighs; those kept out count as broken.

    Those kept out may be honest, and still as many others Byzantine as ever: where the round would be skipped for lack
    of them, or tolerate fewer, they take part in it.
    """
    screened = look({**replies, **kept_out})
    combined, report = decide(rule, model, screened, weights=weigh(screened), **options)
    if kept_out and (report.skipped or _tolerates_fewer(rule, report)):
        screened = look(replies)
        combined, report = decide(rule, model, screened, weights=weigh(screened), **options)
        lifted = f"the quarantine of {len(kept_out)} is lifted for this round: without them it would tolerate fewer"
        report = replace(report, note=" ".join(filter(None, (report.note, lifted))))
    return combined, screened, report


def _tolerates_fewer(rule: Rule, report: RoundReport) -> bool:
    """Whether broken replies lower the f in force of a part of the rule."""
    n = report.answered
    return find_in_force(rule, n, _count_broken(report)) != find_in_force(rule, n)


def _finds_all(rule: Rule, report: RoundReport) -> bool:
    """Whether as many replies are broken as may be Byzantine, so that those left are to be honest."""
    tolerant = [stage for stage in rule.stages if stage.tolerates]
    return all(0 < stage.resolve_f(report.answered) <= _count_broken(report) for stage in tolerant)


def _count_broken(report: RoundReport) -> int:
    return sum(client.replied and client.distance is None for client in report.clients)


def _describe_few(sound: int, least: int) -> str:
    return f"sound replies must be at least {least}, got {sound}"
