"""Journals as servers write them, without a server."""

from __future__ import annotations

from pathlib import Path

from report.records import HOSTILE
from robagg.server import ClientVerdict, Journal, RoundReport

TURNED = "\u202eevil\u202c"
"""A name that would turn the text behind it around."""
NAMES = (HOSTILE, TURNED, "x" * 10_000, "<img src=x onerror=window.stolen=1>", "عميل-7", "site\n2\x1b[2J")


def fill_journal(path: Path, rounds: int = 30, clients: int = 12, *, start: int = 1) -> Path:
    """Clients site-0, site-1, ...; the last two are rejected, the third does not answer in odd rounds."""
    journal = Journal(path)
    for number in range(start, start + rounds):
        verdicts = []
        for k in range(clients):
            bad, silent = k >= clients - 2, k == 2 and number % 2 == 1
            weight, distance = (0.0, 9.5) if bad else (1 / (clients - 2), 1 + k / 10)
            reason = "9.5 from the centre, beyond tau 2" if bad else "no reply" if silent else ""
            verdicts.append(
                ClientVerdict(
                    f"site-{k}",
                    0.0 if silent else weight,
                    None if silent else distance,
                    rejected=bad,
                    reason=reason,
                    replied=not silent,
                    size=100.0 + k,
                    aside="running_mean is 1e4 times as far off" if k == 1 and number == 4 else "",
                    reputation=0.8**number if bad else 1.0,
                )
            )
        skipped = "QuorumError: too few sound replies" if number == 7 else ""
        report = RoundReport(
            "tq(f=2)",
            tuple(verdicts),
            round=number,
            run="1b0e",
            time="2026-01-02T03:04:05+00:00",
            f=None if skipped else 2,
            f_asked=0.2,
            tau=None if skipped else 2.0 + number / 100,
            skipped=skipped,
            metrics={"loss": 1 / number},
        )
        journal.write(journal.seal(report.to_entry()))
    return path


def fill_hostile(path: Path, rounds: int = 3) -> Path:
    """Names, reasons, rules and metrics that try to be markup, or to turn the page around."""
    journal = Journal(path)
    for number in range(1, rounds + 1):
        clients = tuple(
            ClientVerdict(name, 0.2 * (k > 0), 1.0 + k, rejected=k == 0, reason=HOSTILE * (k == 0), aside=HOSTILE)
            for k, name in enumerate(NAMES)
        )
        report = RoundReport(
            f"tq{HOSTILE}", clients, (HOSTILE,), round=number, tau=1e300, f=1, note=HOSTILE, metrics={HOSTILE: HOSTILE}
        )
        journal.write(journal.seal(report.to_entry()))
    return path
