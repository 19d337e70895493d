"""A robust server for any framework: screening by client name, the verdict, the journal, warnings.

from robagg.server import RobustServer

server = RobustServer("nnm >> tq", f=0.2, journal="rounds.jsonl")
result = server.aggregate(1, {"site-1": state_dict, ...}, model=model)
"""

from robagg.server.journal import Journal, JournalContents, read_journal, verify_journal
from robagg.server.model import UnfitError
from robagg.server.report import ClientVerdict, RoundReport
from robagg.server.screen import Failure, Reply
from robagg.server.server import RobustServer, RoundResult

__all__ = [
    "ClientVerdict",
    "Failure",
    "Journal",
    "JournalContents",
    "Reply",
    "RobustServer",
    "RoundReport",
    "RoundResult",
    "UnfitError",
    "read_journal",
    "verify_journal",
]
