"""What a page knows of a journal: the rounds in columns, each name and each text once, nothing but numbers and text."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Any

from robagg._core.checks import is_number, is_whole
from robagg._core.leaf import cut
from robagg.report.page.gather import BUDGET, Shared, deflate, hide_home
from robagg.server import ClientVerdict, RoundReport, verify_journal
from robagg.server.tail import JournalTail

CHUNK = 100
"""How many rounds are packed, or sent, at once."""
MOST_FAULTS = 8
"""How many faults of the chain are named."""
MOST_LETTERS = 2000
"""Of a reason or a note. Names are kept whole: they say who is who."""

Round = dict[str, Any]


class Rounds:
    """The rounds of a journal that were read so far."""

    def __init__(self, path: str | Path) -> None:
        self.id = secrets.token_hex(8)
        """By which a page sees that its rounds are of another journal."""
        self.tail = JournalTail(path)
        self.names = Shared()
        self.texts = Shared()
        self.rounds: list[Round] = []
        self._places: dict[str, int] = {}
        """Where each text stands, as the journal has it."""

    def read(self) -> None:
        """Take in what was written since."""
        self.rounds += map(self._pack, self.tail.read())

    def list_from(self, first: int, names: int, texts: int) -> dict[str, Any]:
        """A hundred rounds from the first one on, with the names and texts from those places on."""
        return {
            "id": self.id,
            "names": self.names.values[names:],
            "texts": self.texts.values[texts:],
            "rounds": self.rounds[first : first + CHUNK],
            "total": len(self.rounds),
            "strange": self.tail.strange,
        }

    def _pack(self, report: RoundReport) -> Round:
        columns: Round = {name: [] for name in ("client", "flags", "weight", "distance", "size", "reputation")}
        columns |= {"reason": [], "aside": []}
        for client in report.clients:
            columns["client"].append(self.names.add(str(client.client)))
            columns["flags"].append(_join_flags(client))
            for name in ("weight", "distance", "size", "reputation"):
                columns[name].append(_round(getattr(client, name)))
            for name in ("reason", "aside"):
                columns[name].append(self._add(getattr(client, name)))
        whole: Round = {name: _read_whole(getattr(report, name)) for name in ("round", "f")}
        whole |= {name: _round(getattr(report, name)) for name in ("tau", "median_weight")}
        whole |= {
            name: self._add(getattr(report, name))
            for name in ("rule", "run", "time", "note", "unprotected", "skipped", "f_asked")
        }
        whole["observed"] = bool(report.observed)
        whole["unasked"] = [self._add(name) for name in report.unasked]
        metrics = report.metrics.items() if isinstance(report.metrics, dict) else ()
        whole["metrics"] = [(self._add(name), self._add(_write(value))) for name, value in metrics]
        return whole | columns

    def _add(self, text: Any) -> int:
        text = "" if text is None else str(text)
        if text not in self._places:
            self._places[text] = self.texts.add(cut(hide_home(text), MOST_LETTERS))
        return self._places[text]


def gather_rounds(journal: str | Path) -> dict[str, Any]:
    """All that the page of a journal shows; where it would be too large, the first rounds are left out."""
    rounds = Rounds(journal)
    rounds.read()
    faults = verify_journal(journal)
    notes = [hide_home(fault) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        notes.append(f"{len(faults) - MOST_FAULTS} more faults: `robagg verify` lists them")
    packed, first = pack_rounds(rounds.rounds)
    if first:
        notes.append(f"the first {first} rounds are left out, for the size of this page")
    known = rounds.list_from(0, 0, 0)
    return known | {"name": Path(journal).name, "rounds": [], "packed": packed, "notes": notes}


def pack_rounds(rounds: list[Round]) -> tuple[list[str], int]:
    """The rounds, a hundred in a text, and how many of the first ones the budget has no room for."""
    packed: list[str] = []
    end = len(rounds)
    while end > 0:
        begin = max(0, end - CHUNK)
        text = deflate(rounds[begin:end])
        if packed and sum(map(len, packed)) + len(text) > BUDGET:
            break
        packed.insert(0, text)
        end = begin
    return packed, end


def _join_flags(client: ClientVerdict) -> int:
    return bool(client.rejected) + 2 * bool(client.replied) + 4 * bool(client.quarantined)


def _round(value: Any) -> float | None:
    """A number with as many digits as anybody reads; whatever else a line may hold in its place is none."""
    try:
        return float(f"{value:.6g}") if is_number(value) and math.isfinite(value) else None
    except OverflowError:
        return None


def _read_whole(value: Any) -> int | None:
    return int(value) if is_whole(value) and abs(value) < 2**53 else None


def _write(value: Any) -> str:
    """A metric as text: a number, or a list of numbers."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_write, value))
    return str(value) if (number := _round(value)) is None else f"{number:.6g}"
