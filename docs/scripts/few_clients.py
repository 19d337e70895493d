"""How many honest clients rules reject where nobody attacks: the tables in the engineers' guide.

    python docs/scripts/few_clients.py; `make paper-docs` calls it

Rows are normal vectors with lengths alike or drawn from 0.5 to 1.5, each round drawn again; it takes some minutes.
"""

from __future__ import annotations

from pathlib import Path

import torch
from blocks import put

from robagg import parse
from robagg.report.formats import render_rows

PAGE = Path(__file__).parents[1] / "engineers.md"
CHAINS = ("nnm >> tq", "nnm >> huber", "nnm >> tq(floor=False)", "tq", "spectralfilter", "scaledfilter", "caf")
CLIENTS = (5, 6, 8, 10, 12, 16, 20, 30, 40)
SHARES = (0.1, 0.2, 0.25, 0.3, 0.4)
ROUNDS, LONG = 100, 300
"""Rounds of each kind, and the length d of a row."""


def main() -> None:
    put(PAGE, "few clients", write_table())
    put(PAGE, "alone", write_alone())


def write_table() -> str:
    """Chains by lengths: the most over n=5 to 40 and f=1 to n/4 of the share of honest client-rounds doubted."""
    lines = []
    for chain in CHAINS:
        worst = [max(count_doubted(chain, n, f, uneven) for n in CLIENTS for f in spread_f(n)) for uneven in (0, 1)]
        lines.append([f"`{chain}`", *(f"{100 * share:.1f}" for share in worst)])
    head = ["% rejected or limited, at most", "equal lengths", "lengths 0.5 to 1.5"]
    return render_rows("", head, lines, "markdown").strip()


def write_alone() -> str:
    """TQ alone, n by f: rejected with equal lengths, and with lengths of 0.5 to 1.5."""
    lines = []
    for n in CLIENTS:
        tolerances = [max(1, min(round(share * n), (n - 1) // 2)) for share in SHARES]
        lines.append(
            [f"n={n}", *(" / ".join(f"{100 * count_doubted('tq', n, f, k):.0f}" for k in (0, 1)) for f in tolerances)]
        )
    return render_rows("", ["% rejected", *(f"f={share:g} n" for share in SHARES)], lines, "markdown").strip()


def spread_f(n: int) -> list[int]:
    """The least, the middle and the largest f from 1 to n/4."""
    return sorted({1, max(1, n // 8), n // 4})


def count_doubted(chain: str, n: int, f: int, uneven: int, rounds: int = ROUNDS) -> float:
    """The share of client-rounds with a reason against an honest client: outside tau, or of half its weight."""
    generator = torch.Generator().manual_seed(0)
    rule, doubted = parse(chain, f=f), 0
    for _ in range(rounds):
        x = torch.randn(n, LONG, generator=generator)
        lengths = 0.5 + torch.rand(n, 1, generator=generator)
        doubted += len(rule.explain(x * lengths if uneven else x).not_believed)
    return doubted / (n * rounds)


if __name__ == "__main__":
    main()
