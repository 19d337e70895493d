"""What another rule would have done in a round that is over, from the Gram matrix that the journal kept of it."""

from __future__ import annotations

from dataclasses import replace

import torch

from robagg._core.aggregate import check_quorum
from robagg._core.passes import Passes
from robagg._core.rule import GramRule, Rule
from robagg._core.sketch import ROUNDING, Sketch
from robagg._core.stack import Stack, read
from robagg._core.stage import find_in_force
from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict, judge
from robagg.rules import Mean
from robagg.server.gram import Gram
from robagg.server.report import RoundReport, report_skip, report_verdict
from robagg.server.screen import Replies, Screened


def replay_round(report: RoundReport, rule: Rule) -> RoundReport:
    """The report of a round as this rule would have made it, of the replies that came when the journal's rule ran.

    A round in which there is nothing to replay, or without a quorum, is reported as skipped.

    Args:
        report: a round of a journal.
        rule: one that decides by distances (see `check_replayable`).

    Example:
        >>> import tempfile
        >>> from robagg import Krum
        >>> from robagg.server import RobustServer
        >>> sent = {"near": 1.0, "also near": 1.1, "far": 50.0}
        >>> replies = {name: {"w": torch.full((4,), x)} for name, x in sent.items()}
        >>> server = RobustServer("mean", journal=tempfile.mkdtemp() + "/rounds.jsonl")
        >>> result = server.aggregate(1, replies, model={"w": torch.zeros(4)})
        >>> [client.weight for client in replay_round(result.report, Krum(f=1)).clients]
        [1.0, 0.0, 0.0]
    """
    check_replayable(rule)
    gram = report.gram
    sound = () if gram is None else gram.clients
    given = [
        Screened(client.client, size=client.size, reason="" if client.client in sound else client.reason or "broken")
        for client in report.clients
        if client.replied
    ]
    failed = {client.client: client.reason for client in report.clients if not client.replied}
    replies = Replies(tuple(given), failed, report.unasked)
    if gram is not None and not gram.note and (not sound or sum(not x.reason for x in given) != len(sound)):
        again = report_skip(rule, replies, "the Gram matrix names others than those who replied: it was changed")
    elif gram is None or gram.note:
        why = "" if gram is None else f": {gram.note}"
        again = report_skip(rule, replies, f"the journal has no Gram matrix of this round{why}")
    else:
        try:
            verdict = judge_again(rule, gram, len(given), {i: x.reason for i, x in enumerate(given) if x.reason})
            again = report_verdict(rule, replies, verdict, {})
        except (QuorumError, ValueError) as error:  # of f against the number of replies
            again = report_skip(rule, replies, str(error).partition(" (row ")[0])
    return replace(again, round=report.round, run=report.run, time=report.time, metrics=report.metrics)


def check_replayable(rule: Rule) -> None:
    """Refuse a rule to which a Gram matrix does not say enough."""
    core = rule.core
    by_distances = isinstance(core, GramRule) and type(core).solve is GramRule.solve and not core.scaled
    if not by_distances and not isinstance(core, Mean):
        raise ValueError(f"{rule} cannot be replayed: {core.name()} needs the updates, and a journal has distances")
    for mixer in rule.mixers:
        if not mixer.needs_distances:
            raise ValueError(f"{rule} cannot be replayed: {mixer.name()} does not decide by distances")
    if isinstance(core, GramRule) and core.needs_median and rule.mixers:
        raise ValueError(
            f"{rule} cannot be replayed: {core.name()} needs the median of the rows behind {rule.mixers[-1].name()}, "
            "and a journal has that of the replies"
        )
    if any(name != "origin" for stage in rule.stages for name in stage.anchors):
        raise ValueError(f"{rule} cannot be replayed: {core.name()} starts from its last value, which would be another")


def judge_again(rule: Rule, gram: Gram, n: int, broken: dict[int, str]) -> Verdict:
    """The verdict of a rule on n replies, of which some are broken, from the Gram matrix of the others.

    Its value is a number without meaning: what the replies held is not known.
    """
    kept = len(gram.clients)
    stack: Stack = read(torch.zeros(kept, 1), broken=broken)
    check_quorum(rule, stack)
    in_force = find_in_force(rule, n, n - kept)
    matrix, anchors = gram.matrix(), tuple(dict.fromkeys(name for stage in rule.stages for name in stage.anchors))
    if not anchors:
        matrix = matrix[:kept, :kept].contiguous()
    spread = torch.tensor(gram.spread, dtype=torch.float64)
    sent = Sketch(matrix, spread, kept, in_force[0], anchors, ROUNDING[torch.float32])
    passes = Passes.of(sent, verdict=True)
    for mixer, f in zip(rule.mixers, in_force, strict=False):
        passes.push(mixer.matrix(passes.distances(f)), shares_rows=mixer.shares_rows)
    outcome = rule.core.solve(passes, in_force[-1], None)
    reach = None if rule.mixers else outcome.reach
    if reach is None:
        weights = outcome.weights if outcome.weights is not None else torch.zeros(kept, dtype=torch.float64)
        rest = 1 - weights.sum() - (0.0 if outcome.median_weight is None else outcome.median_weight)
        reach = sent.squared_distances(torch.cat([weights, rest.expand(len(anchors))])).sqrt()
    return judge(rule, stack, replace(outcome, values=[torch.zeros(1)]), distances_known=reach)
