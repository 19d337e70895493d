"""The file that the Flower strategy writes, a line a round, as a table of its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def read_rounds(path: str | Path) -> tuple[list[dict[str, Any]], int]:
    """The rounds in a file, and how many lines are none: a run may be writing it right now."""
    rounds, strange = [], 0
    for line in Path(path).read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            strange += bool(line.strip())
            continue
        if isinstance(entry, dict) and {"round", "rule", "nodes"} <= entry.keys():
            rounds.append(entry)
        else:
            strange += 1
    return rounds, strange


def summarise_nodes(rounds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each node: how often it replied and was rejected, its mean share, and why it was last not believed.

    >>> node = {"node": "7", "weight": 0.0, "distance": 3.5, "rejected": True, "reason": "outside tau"}
    >>> summarise_nodes([{"round": 1, "rule": "tq", "nodes": [node]}])
    [{'node': '7', 'rounds': 1, 'replied': 1, 'rejected': 1, 'mean weight': 0.0, 'last reason': 'outside tau'}]
    """
    rows: dict[str, dict[str, Any]] = {}
    for entry in rounds:
        for node in entry["nodes"]:
            name = str(node["node"])
            row = rows.setdefault(
                name, {"node": name, "rounds": 0, "replied": 0, "rejected": 0, "mean weight": 0.0, "last reason": ""}
            )
            replied = bool(node.get("replied", True))
            row["rounds"] += 1
            row["replied"] += replied
            row["rejected"] += bool(node["rejected"])
            row["mean weight"] += node["weight"]
            row["last reason"] = node.get("reason") or row["last reason"]
    for row in rows.values():
        row["mean weight"] = round(row["mean weight"] / max(1, row["replied"]), 4)
    return sorted(rows.values(), key=lambda row: (-row["rejected"], row["node"]))


def describe_rounds(rounds: Sequence[Mapping[str, Any]]) -> str:
    """One line about all of them."""
    rules = ", ".join(dict.fromkeys(str(entry["rule"]) for entry in rounds))
    skipped = sum(bool(entry.get("skipped")) for entry in rounds)
    observed = sum(bool(entry.get("observed")) for entry in rounds)
    told = [f"{len(rounds)} rounds of {rules}"]
    told += [f"{skipped} skipped"] if skipped else []
    told += [f"{observed} looked on only"] if observed else []
    return ", ".join(told)
