"""A robust server for any framework: screening by client name, the verdict, the journal, reputation, resuming.

from robagg.server import RobustServer

server = RobustServer("scaledfilter", f=0.2, journal="rounds.jsonl")
result = server.aggregate(1, {"site-1": state_dict, ...}, model=model)
"""

from robagg.server.exporters import PrometheusExporter, TensorBoardExporter
from robagg.server.gram import Gram
from robagg.server.journal import Journal, JournalContents, read_journal, verify_journal
from robagg.server.memory import ClientRecord, Reputation
from robagg.server.model import UnfitError
from robagg.server.replay import check_replayable, replay_round
from robagg.server.report import ClientVerdict, RoundReport
from robagg.server.round import RoundResult, SkippedRoundsError
from robagg.server.screen import Failure, Reply
from robagg.server.server import RobustServer

__all__ = [
    "ClientRecord",
    "ClientVerdict",
    "Failure",
    "Gram",
    "Journal",
    "JournalContents",
    "PrometheusExporter",
    "Reply",
    "Reputation",
    "RobustServer",
    "RoundReport",
    "RoundResult",
    "SkippedRoundsError",
    "TensorBoardExporter",
    "UnfitError",
    "check_replayable",
    "read_journal",
    "replay_round",
    "verify_journal",
]
