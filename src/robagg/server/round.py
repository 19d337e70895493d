"""A round on its way: what was decided, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robagg.server.model import Flat
from robagg.server.report import RoundReport
from robagg.server.screen import Replies, Screened


class SkippedRoundsError(RuntimeError):
    """So many rounds in a row were skipped that the run makes no sense any more."""

    @classmethod
    def of(cls, rounds: int) -> SkippedRoundsError:
        """The error after so many rounds."""
        return cls(
            f"the last {rounds} rounds were skipped, so the model is that of before them; the log and the journal say "
            "why of each. max_skipped= bears more"
        )


@dataclass(frozen=True)
class RoundResult:
    """What came of a round.

    Args:
        model: the next model, of the kind that was given; the same object where the round was skipped.
        report: the verdict on every client.
    """

    model: Any
    report: RoundReport

    @property
    def skipped(self) -> str:
        """Why the round was skipped; empty where it was not."""
        return self.report.skipped


@dataclass(frozen=True)
class Decision:
    """A round before it is entered: what an adapter still makes a model of."""

    values: dict[str, Flat] | None
    """Every array of the model, flat; None where the round is skipped."""
    report: RoundReport
    replies: Replies
    state: Any
    """What a rule that remembers wants back."""

    @property
    def accepted(self) -> list[Screened]:
        """The replies that were not rejected."""
        rejected = {client.client for client in self.report.rejected}
        return [reply for reply in self.replies.given if reply.client not in rejected]
