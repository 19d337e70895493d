"""One round's decision: the rule's value with its report, or the reason why the model is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robagg._core.rule import Rule
from robagg._core.tolerance import QuorumError
from robagg.server.combine import Combined, combine
from robagg.server.model import Model
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
        allow_unprotected: whether a value counts where the f in force is 0 and more was asked.
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
    if report.unprotected and not allow_unprotected:
        return None, replace(report, skipped=f"{report.unprotected}; allow_unprotected=True takes its value")
    return combined, report


def _describe_few(sound: int, wanted: int) -> str:
    return f"{sound} sound replies came, at least {wanted} are wanted"
