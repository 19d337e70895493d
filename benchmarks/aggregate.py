"""Every rule against `torch.mean(x, 0)`, ByzFL and byzpy, on the same stack in one run on the CPU.

python benchmarks/aggregate.py [--n 20] [--d 1199882] [--peers all|none|cm,tm,...] [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch

import peers
import robagg as ra
from robagg import kernels
from timing import describe_machine, take_turns

RULES = (
    "mean",
    "cm",
    "tm",
    "krum",
    "multikrum",
    "rfa",
    "huber",
    "cc(iterations=10)",
    "mca",
    "tq",
    "nnm >> tq",
    "bucketing >> tq",
)
SORTED = ("cm", "tm")
LEAST_GAIN = 8.0
MOST_MIXED = 2.2
"""`nnm >> tq`, in times of `tq`."""


def find_target(rule: str, n: int) -> float | None:
    """The most times `torch.mean` that the rule should take."""
    if ">>" in rule:
        return None
    if rule in SORTED:
        return 2.0
    return 2.5 if n < 64 else 3.5


def measure(n: int, d: int, seconds: float, wanted: str) -> dict[str, Any]:
    """Times of everything on one stack (n, d)."""
    f = 3 * n // 10
    torch.manual_seed(0)
    x = torch.randn(n, d)
    room = torch.empty_like(x)
    subjects: dict[str, Any] = {"torch.mean": partial(x.mean, 0), "copy": partial(room.copy_, x)}
    subjects |= {text: partial(ra.parse(text, f=f), x) for text in RULES}
    times = take_turns(subjects, seconds=seconds)
    del subjects["copy"], room
    theirs: dict[str, dict[str, Any]] = {}
    for text, libraries in (peers.list_peers(n, f) if wanted != "none" else {}).items():
        if wanted == "all" or text in wanted.split(","):
            for library, ways in libraries.items():
                row = measure_peer(ways, subjects[text], x, seconds)
                theirs.setdefault(library, {})[text] = row
    base = times["torch.mean"]
    return {
        "n": n,
        "d": d,
        "f": f,
        "kernel": kernels.active("cpu"),
        "mean_ms": 1000 * base,
        "copy_ms": 1000 * times["copy"],
        "rules": {
            text: {"ms": 1000 * times[text], "ratio": times[text] / base, "target": find_target(text, n)}
            for text in RULES
        },
        "peers": theirs,
    }


def measure_peer(ways: list[peers.Peer], ours: Any, x: torch.Tensor, seconds: float) -> dict[str, Any]:
    """One rule of a peer, by its faster way, in turn with ours; where it cannot run, the reason."""
    try:
        if x.numel() > 1e8:  # some seconds a call: one of each says enough
            peer, taken = peers.take_faster(ways, x, warm=False)
            middle = {"peer": taken, **take_turns({"ours": ours}, seconds=0, least=3)}
        else:
            peer, _ = peers.take_faster(ways, x)
            middle = take_turns({"peer": partial(peer.run, x), "ours": ours}, seconds=seconds / 8, least=3)
    except Exception as error:
        return {"call": ways[0].call, "error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return {"call": peer.call, "way": peer.way, "seconds": middle["peer"], "gain": middle["peer"] / middle["ours"]}


def show(result: dict[str, Any]) -> None:
    print(f"\nn={result['n']}, d={result['d']:,}, float32, {result['kernel']}")
    print(f"mean(x, 0): {result['mean_ms']:.2f} ms; a copy of x: {result['copy_ms']:.2f} ms")
    print(f"{'rule':<20}{'ms':>9}{'x mean':>9}{'target':>9}")
    for text, row in result["rules"].items():
        target = "" if row["target"] is None else f"<= {row['target']:.1f}"
        if text == "nnm >> tq":
            target = f"   = {row['ms'] / result['rules']['tq']['ms']:.2f} x tq, target <= {MOST_MIXED}"
        print(f"{text:<20}{row['ms']:>9.2f}{row['ratio']:>9.2f}{target:>9}")
    for library, rows in result["peers"].items():
        least = f">= {LEAST_GAIN:.0f}" if library == "ByzFL" else ""
        print(f"{'against ' + library:<54}{'ms':>12}{'times faster':>14}{'target':>8}")
        for text, row in rows.items():
            if "error" in row:
                print(f"{row['call']:<54}cannot run: {row['error']}")
            else:
                name = f"{row['call']} {row['way'] and '(' + row['way'] + ')'}"
                print(f"{name:<54}{1000 * row['seconds']:>12.1f}{row['gain']:>14.1f}{least:>8}  {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--d", type=int, default=1_199_882)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--peers", default="all", help="all, none, or rules of ours that have one, with commas")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    result = measure(options.n, options.d, options.seconds, options.peers)
    show(result)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
