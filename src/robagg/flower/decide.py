"""One round's decision: the rule's value with its report, or the reason why the model is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robagg._core.rule import Rule
from robagg._core.tolerance import QuorumError
from robagg.flower.combine import Combined, combine
from robagg.flower.model import GlobalModel
from robagg.flower.report import RoundReport, report_skip, report_verdict
from robagg.flower.screen import Replies


def decide(
    rule: Rule,
    model: GlobalModel,
    replies: Replies,
    min_valid_replies: int,
    *,
    state: Any = None,
    max_weight: float | None = None,
) -> tuple[Combined | None, RoundReport]:
    """The rule's value with its report; without a quorum, None with a report that says why. It does not raise."""
    if len(replies.sound) >= min_valid_replies:
        try:
            combined = combine(rule, model, replies.given, state=state, max_weight=max_weight)
        except (QuorumError, ValueError) as error:
            why, _, _ = str(error).partition(" (row ")  # the report names nodes
            return None, report_skip(rule, replies, why)
        report = report_verdict(rule, replies, combined.verdict)
        sound = sum(node.distance is not None for node in report.nodes)
        if sound >= min_valid_replies:
            return combined, report
    else:
        report = report_skip(rule, replies, "")
        sound = report.n - len(report.rejected)
    return None, replace(report, skipped=f"{sound} sound replies came, at least {min_valid_replies} are wanted")
