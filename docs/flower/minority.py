"""An honest minority: one of ten clients has mostly nines, the others what is left.

python docs/flower/minority.py            prints the table
python docs/flower/minority.py --write    writes it to docs/flower/minority.md
"""
# ruff: noqa: E402

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "examples" / "flower")]

import torch
from flwr.app import ArrayRecord
from robust_digits.task import build_model, evaluate, read_data, train

from flower.federation import fill, run_round
from robagg import SortedRule, parse
from robagg.flower import RobustStrategy
from robagg.server import ClientVerdict, RoundReport

N, ROUNDS, F = 10, 20, 0.3
SHARES = (0.1, 0.4, 0.7, 1.0)
RULES = ["mean", "tq", "cm", "tm", "krum", "multikrum", "rfa", "huber", "mca", "nnm >> tq", "nnm >> cm"]
OUT = ROOT / "docs" / "flower" / "minority.md"


def split(share: float) -> list[torch.Tensor]:
    """Which images each client has: client 0 has that share of nines, 0.1 being everybody's."""
    y = read_data("digits").train_y
    size = len(y) // N
    # Shuffled: neighbours in this data set are of the same writers, which would be a difference of its own.
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    nines, others = order[y[order] == 9], order[y[order] != 9]
    count = min(int(share * size), int(0.9 * len(nines)))
    mine = torch.cat([nines[:count], others[: round(count * (1 - share) / share)]])
    rest = order[~torch.isin(order, mine)]
    return [mine, *(rest[i :: N - 1] for i in range(N - 1))]


def run(rule: str, share: float) -> tuple[list[RoundReport], float, float]:
    """The reports of all rounds, and the accuracy on nines and on the rest at the end."""
    data, parts = read_data("digits"), split(share)
    model = build_model("digits")
    arrays = ArrayRecord(model.state_dict())
    reports: list[RoundReport] = []
    strategy = RobustStrategy(rule, f=F, on_round=reports.append)
    for server_round in range(1, ROUNDS + 1):
        contents = []
        for i, part in enumerate(parts):
            model.load_state_dict(arrays.to_torch_state_dict())
            seed = 1000 * server_round + i
            train(model, data.train_x[part], data.train_y[part], epochs=2, learning_rate=0.1, seed=seed)
            contents.append(fill(ArrayRecord(model.state_dict())))
        arrays = run_round(strategy, arrays, contents, server_round)[0] or arrays
    model.load_state_dict(arrays.to_torch_state_dict())
    nines = data.test_y == 9
    return reports, *(evaluate(model, data.test_x[mask], data.test_y[mask])[1] for mask in (nines, ~nines))


def rate(clients: list[ClientVerdict]) -> str:
    """How often clients had no part in the value."""
    return f"{sum(client.rejected or client.weight < 1e-6 for client in clients) / len(clients):.0%}"


def tabulate() -> str:
    shares = " | ".join(f"{share:.0%} nines" for share in SHARES)
    lines = [
        "# An honest minority",
        "",
        "Made by `docs/flower/minority.py`.",
        "",
        f"| rule | {shares} | the other nine | accuracy on nines | on the rest |",
        "|---" * (4 + len(SHARES)) + "|",
    ]
    for rule in RULES:
        rates = []
        for share in SHARES:
            reports, nines, rest = run(rule, share)
            clients = [client for report in reports for client in report.clients]
            rates.append(rate([client for client in clients if client.client == "100"]))
        rates.append(rate([client for client in clients if client.client != "100"]))
        if isinstance(parse(rule).core, SortedRule):
            rates = ["sorts"] * len(rates)
        lines.append(f"| {rule} | {' | '.join(rates)} | {nines:.0%} | {rest:.0%} |")
    lines += [
        "",
        f"One honest client of {N} has nines as the given share of its data (everybody's is 10%). Nobody attacks; "
        f"{ROUNDS} rounds on digits, f={F}. The share of rounds in which that client had no part in the value; in the "
        "last of these cases also that of the other nine clients, and the accuracy of the last model. Rules that sort "
        "numbers leave out nobody as a whole.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    text = tabulate()
    print(text)
    if args.write:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text)


if __name__ == "__main__":
    main()
