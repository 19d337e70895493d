"""What a round decided about every node, as it goes to the log, to metrics and to a file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flwr.app import MetricRecord

from robagg._core.rule import Rule, SortedRule
from robagg._core.verdict import Verdict
from robagg.flower.screen import Replies, find_fault


@dataclass(frozen=True)
class NodeVerdict:
    """One node in one round."""

    node: int
    weight: float
    """Its share in the value. Rules that sort numbers give every sound reply the same say."""
    distance: float | None
    """From its reply to the value (for rules that walk, to the centre of the last step); None where there is none."""
    rejected: bool
    """Broken, or outside the rule's radius. A node that did not answer, or was just not chosen, is not."""
    reason: str = ""
    """Why it was not believed, or why nothing came; empty for a node that was believed."""
    replied: bool = True


@dataclass(frozen=True)
class RoundReport:
    """One round: a line of the file."""

    rule: str
    nodes: tuple[NodeVerdict, ...]
    round: int = 0
    tau: float | None = None
    median_weight: float = 0.0
    note: str = ""
    skipped: str = ""
    """Why the round was skipped and the model kept; empty where it was not."""
    observed: bool = False
    """Whether the rule only looked on, and the model came from plain averaging."""

    @property
    def n(self) -> int:
        """How many nodes replied."""
        return sum(node.replied for node in self.nodes)

    @property
    def rejected(self) -> list[NodeVerdict]:
        return [node for node in self.nodes if node.rejected]

    def to_json(self) -> str:
        """One line. Node ids go beyond what some readers take for a whole number, so they are text."""
        fields = {"round": self.round} | dataclasses.asdict(self)
        fields["nodes"] = [vars(node) | {"node": str(node.node)} for node in self.nodes]
        return json.dumps(fields, allow_nan=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> RoundReport:
        fields: dict[str, Any] = json.loads(line)
        nodes = tuple(NodeVerdict(**node | {"node": int(node["node"])}) for node in fields.pop("nodes"))
        return cls(nodes=nodes, **fields)

    def to_metrics(self) -> MetricRecord:
        """What a history of metrics can hold of it."""
        metrics = MetricRecord({"robagg-replies": self.n, "robagg-rejected": len(self.rejected)})
        metrics["robagg-skipped"] = int(bool(self.skipped))
        metrics["robagg-rejected-nodes"] = [node.node for node in self.rejected]
        if self.tau is not None:
            metrics["robagg-tau"] = self.tau
        return metrics

    def __str__(self) -> str:
        """A table: node, weight, distance, reason."""
        lines = [f"round {self.round}: {self.rule}, {self.n} replies, {len(self.rejected)} rejected"]
        for node in self.nodes:
            distance = "-" if node.distance is None else f"{node.distance:.4g}"
            lines.append(f"{node.node:>22}  {100 * node.weight:>6.2f}%  {distance:>9}  {node.reason}".rstrip())
        return "\n".join([*lines, *filter(None, (self.note, self.skipped and f"skipped: {self.skipped}"))])


def report_verdict(rule: Rule, replies: Replies, verdict: Verdict) -> RoundReport:
    """The report of a round in which the rule came to a value."""
    broken = verdict.distances.isnan()
    # Where all lie outside, the value is the median of all: nobody was turned away.
    rejected = broken if bool(verdict.rejected.all()) else verdict.rejected
    alike = 1 / max(1, int((~broken).sum())) if isinstance(rule.core, SortedRule) else None
    nodes = [
        NodeVerdict(
            node=reply.node,
            weight=float(verdict.weights[i]) if alike is None else alike * (not broken[i]),
            distance=_number(float(verdict.distances[i])),
            rejected=bool(rejected[i]),
            reason=verdict.reasons[i],
        )
        for i, reply in enumerate(replies.given)
    ]
    return RoundReport(
        rule=str(rule),
        nodes=(*nodes, *_failures(replies)),
        tau=None if verdict.tau is None else _number(verdict.tau),
        median_weight=verdict.median_weight,
        note=verdict.note,
    )


def report_skip(rule: Rule, replies: Replies, why: str) -> RoundReport:
    """The report of a round in which the rule came to no value; it names every broken reply all the same."""
    faults = [(reply.node, find_fault(reply)) for reply in replies.given]
    nodes = [NodeVerdict(node, 0.0, None, bool(fault), fault) for node, fault in faults]
    return RoundReport(str(rule), (*nodes, *_failures(replies)), skipped=why)


def _failures(replies: Replies) -> Sequence[NodeVerdict]:
    return [NodeVerdict(node, 0.0, None, False, why, replied=False) for node, why in replies.failed.items()]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
