"""Where reports go: the log, a file with a line a round, a callback, and a warning about a node rejected repeatedly."""

from __future__ import annotations

import logging
import operator
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from robagg.flower.report import RoundReport

logger = logging.getLogger("flwr")
"""Flower's own, so that `flwr run --stream` and `flwr log` show it."""

OnReject = Callable[[int, int, str], None]
"""Called with the round, the node's id and the reason."""


class Journal:
    """Remembers reports, and who was rejected of late.

    Args:
        path: a file that gets a JSON line for each round; None writes none.
        on_reject: called for every rejected reply.
        warn_after: (k, m): a node rejected in k of its last m rounds gives one warning.
    """

    def __init__(self, path: str | Path | None, on_reject: OnReject | None, warn_after: tuple[int, int]) -> None:
        try:
            k, m = map(operator.index, warn_after)
        except (TypeError, ValueError):
            k, m = 0, 0
        if not 1 <= k <= m:
            raise ValueError(f"warn_after=(k, m) wants two whole numbers, 1 <= k <= m, got {warn_after!r}")
        self.warn_after = (k, m)
        self.path = None if path is None else _mend(Path(path))
        self.on_reject = on_reject
        self._recent: dict[int, deque[bool]] = {}
        self._warned: set[int] = set()

    def enter(self, report: RoundReport) -> None:
        """Tell everybody about a round. What goes wrong in the telling must not end the run."""
        self._log(report)
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(report.to_json() + "\n")
            except OSError as error:
                logger.error("robagg: the verdict of round %d could not be written: %s", report.round, error)
        if self.on_reject is not None:
            for node in report.rejected:
                try:
                    self.on_reject(report.round, node.node, node.reason)
                except Exception:
                    logger.exception("robagg: on_reject failed for node %d", node.node)
        self._warn(report)

    def _log(self, report: RoundReport) -> None:
        believed = report.n - len(report.rejected)
        tau = "" if report.tau is None else f", tau {report.tau:.4g}"
        looking = ", looking on only" if report.observed else ""
        logger.info("robagg: %s: %d of %d replies not rejected%s%s", report.rule, believed, report.n, tau, looking)
        for node in report.nodes:
            if node.rejected or not node.replied:
                what = "rejected" if node.replied else "lost"
                logger.warning("\t> node %d %s: %s", node.node, what, node.reason)
            elif node.reason:
                logger.debug("\t> node %d: %s", node.node, node.reason)
        if report.note:
            logger.warning("robagg: %s", report.note)
        if report.skipped:
            what = "would be skipped" if report.observed else "is skipped and the model kept"
            logger.error("robagg: round %d %s: %s", report.round, what, report.skipped)

    def _warn(self, report: RoundReport) -> None:
        k, m = self.warn_after
        for node in report.nodes:
            if not node.replied:
                continue
            recent = self._recent.setdefault(node.node, deque(maxlen=m))
            recent.append(node.rejected)
            if sum(recent) >= k and node.node not in self._warned:
                self._warned.add(node.node)
                logger.warning(
                    "robagg: node %d was rejected in %d of its last %d rounds: it is hostile, broken, or a different "
                    "population. Look at its data before you shut it out.",
                    node.node,
                    sum(recent),
                    len(recent),
                )


def read_log(path: str | Path) -> list[RoundReport]:
    """The reports in a file that a strategy wrote, in order. Torn lines are skipped, and the log says how many."""
    reports, torn = [], 0
    for line in Path(path).read_bytes().splitlines():
        try:
            reports.append(RoundReport.from_json(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            torn += bool(line.strip())
    if torn:
        logger.warning("robagg: %d line%s of %s that hold no round skipped", torn, "s" * (torn > 1), path)
    return reports


def _mend(path: Path) -> Path:
    """The file, of which a run that was killed may have left half a line: the next gets one of its own."""
    try:
        if path.is_file() and path.stat().st_size:
            with path.open("rb+") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    file.write(b"\n")
    except OSError as error:
        logger.error("robagg: %s cannot be read: %s", path, error)
    return path
