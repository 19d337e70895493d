"""The journal of a server as a table of its clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robagg.server import RoundReport
from robagg.server.quote import quote


def summarise_clients(rounds: Sequence[RoundReport]) -> list[dict[str, Any]]:
    """A row for each client: how often it replied and was rejected, its mean share, and why it was last not believed.

    >>> from robagg.server import ClientVerdict
    >>> client = ClientVerdict("7", weight=0.0, distance=3.5, rejected=True, reason="outside tau")
    >>> summarise_clients([RoundReport("tq", (client,), round=1)])
    [{'client': '7', 'rounds': 1, 'replied': 1, 'rejected': 1, 'mean weight': 0.0, 'last reason': 'outside tau'}]
    """
    rows: dict[str, dict[str, Any]] = {}
    start = {"rounds": 0, "replied": 0, "rejected": 0, "mean weight": 0.0, "last reason": ""}
    for report in rounds:
        for client in report.clients:
            row = rows.setdefault(client.client, {"client": quote(client.client)} | start)
            row["rounds"] += 1
            row["replied"] += client.replied
            row["rejected"] += client.rejected
            row["mean weight"] += client.weight
            row["last reason"] = quote(client.reason, 300) or row["last reason"]
    for row in rows.values():
        row["mean weight"] = round(row["mean weight"] / max(1, row["replied"]), 4)
    return sorted(rows.values(), key=lambda row: (-row["rejected"], row["client"]))


def compare_clients(rounds: Sequence[RoundReport], again: Sequence[RoundReport]) -> list[dict[str, Any]]:
    """A row for each client: how often it was rejected, and its mean share, as the rounds ran and replayed."""
    replayed = {row["client"]: row for row in summarise_clients(again)}
    return [
        {
            "client": row["client"],
            "replied": row["replied"],
            **{f"{name}, {when}": side[name] for name in ("rejected", "mean weight") for when, side in sides.items()},
        }
        for row in summarise_clients(rounds)
        for sides in [{"as it ran": row, "replayed": replayed[row["client"]]}]
    ]


def describe_rounds(rounds: Sequence[RoundReport]) -> str:
    """One line about all of them."""
    rules = ", ".join(dict.fromkeys(report.rule for report in rounds))
    counts = {
        "skipped": sum(bool(report.skipped) for report in rounds),
        "unprotected": sum(bool(report.unprotected) for report in rounds),
        "looked on only": sum(report.observed for report in rounds),
    }
    return ", ".join([f"{len(rounds)} rounds of {rules}", *(f"{n} {what}" for what, n in counts.items() if n)])
