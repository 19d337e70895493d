"""The hostile table through a server of one's own, Flower and NVFlare: eleven replies, of which the first is hostile.

python docs/server/hostile.py                   prints the table
python docs/server/hostile.py --write           writes it to docs/server/hostile.md
python docs/server/hostile.py --nvflare FOLDER  takes NVFlare's column from a run of tests/nvflare/test_matrix.py

NVFlare needs an environment of its own, so its column is kept in a file beside this one. FOLDER is what
`pytest tests/nvflare/test_matrix.py --basetemp ...` leaves in that environment.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robagg.server import Failure, Reply, RobustServer, RoundReport, read_journal

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
ROOT = Path(__file__).parents[2]
OUT, NVFLARE = ROOT / "docs" / "server" / "hostile.md", ROOT / "docs" / "server" / "hostile-nvflare.json"
sys.path += [str(ROOT / "tests"), str(ROOT / "examples" / "flower")]

from server.hostile import BROKEN, FAR, SIZE, draw_model, draw_update, flatten  # noqa: E402

N, MODEL = 11, draw_model()
Column = dict[str, str]
LEGEND = """\
TQ with f=2. lost: no reply, it lowers n. dropped: it cannot be used, and the verdict says why. rejected: it can be
read, and lies beyond tau. In brackets the distance of the model to the mean of the honest updates, in units of the
farthest honest one's: above 1.5 it would count as moved. An empty cell: the framework cannot carry it, or it is a kind
of another's own. NVFlare's column is a run in its simulator, a round for each row; in the last the site stays silent
until the timeout. `tests/server/hostile.py`, `tests/flower/hostile.py` and `tests/nvflare/sites.py` say what the names
mean; tests hold every row.
"""


def judge(report: RoundReport, model: Mapping[str, Any], first: str, seeds: range) -> str:
    """What became of the first client's reply and of the model, where these are the others."""
    honest = [flatten(draw_update(MODEL, seed)) for seed in seeds]
    centre = np.mean(honest, axis=0)
    away = np.linalg.norm(flatten(model) - centre) / max(np.linalg.norm(row - centre) for row in honest)
    verdict = next(client for client in report.clients if client.client == first)
    if report.skipped or not away < 1.5:  # which NaN is not either
        return f"**moved** ({away:.2g})"
    if not verdict.replied:
        return f"lost ({away:.2f})"
    if not verdict.rejected:
        return f"believed ({away:.2f})"
    return f"{'dropped' if verdict.distance is None else 'rejected'} ({away:.2f})"


def run_server() -> Column:
    column = {}
    for name, attack in ({"error": None} | BROKEN | FAR).items():
        replies: dict[str, Any] = {f"site-{i}": Reply(draw_update(MODEL, i), size=10) for i in range(1, N)}
        if attack is None:
            first: Any = Failure("it failed")
        else:
            arrays, metrics = attack(MODEL, draw_update(MODEL, 0), {SIZE: 10})
            first = Reply(arrays, size=metrics[SIZE])
        result = RobustServer("tq", f=2).aggregate(1, {"site-0": first} | replies, model=MODEL)
        column[name] = judge(result.report, result.model, "site-0", range(1, N))
    return column


def run_flower() -> Column:
    from flwr.app import Error, MetricRecord

    from flower import federation, hostile
    from robagg.flower import RobustStrategy

    column, sent = {}, federation.pack(MODEL)
    for name, attack in ({"error": None} | hostile.BROKEN | hostile.FAR).items():
        strategy = RobustStrategy("tq", f=2)
        reports = federation.watch(strategy)
        contents: list[Any] = [federation.fill(draw_update(MODEL, i)) for i in range(N)]
        metrics = MetricRecord({"num-examples": 10, "loss": 1.0})
        update = federation.pack(draw_update(MODEL, 0))
        contents[0] = Error(0, "it failed") if attack is None else attack(sent, update, metrics)
        arrays, _ = federation.run_round(strategy, sent, contents)
        column[name] = judge(reports[0], federation.unpack(arrays), "100", range(1, N))
    return column


def read_nvflare(folder: Path) -> Column:
    """A round for each case; the model that it led to is what the next round was sent."""
    sys.path.append(str(ROOT / "tests" / "nvflare"))
    from sites import CASES

    (journal,) = folder.rglob("rounds.jsonl")
    rounds, column = read_journal(journal).rounds, {}
    for number, name in enumerate([*CASES, "silence"]):
        file = journal.parent / (f"{number + 1}.npz" if number < len(CASES) else "last.npz")
        with np.load(file) as model:
            column[name] = judge(rounds[number], model, "site-1", range(2, N + 1))
    return column


def tabulate(columns: dict[str, Column]) -> str:
    names = dict.fromkeys(name for column in columns.values() for name in column)
    shared = sorted(names, key=lambda name: -sum(name in column for column in columns.values()))
    lines = ["# What hostile clients may send", "", "Made by `docs/server/hostile.py`.", ""]
    lines += [f"| the hostile one of {N} sends | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for name in shared:
        lines.append(f"| {name} | " + " | ".join(column.get(name, "") for column in columns.values()) + " |")
    return "\n".join([*lines, "", LEGEND])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--nvflare", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    if args.nvflare:
        NVFLARE.write_text(json.dumps(read_nvflare(args.nvflare), indent=1) + "\n")
        return
    for name in ("robagg", "flwr"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    columns = {"`robagg.server`": run_server(), "Flower": run_flower(), "NVFlare": json.loads(NVFLARE.read_text())}
    text = tabulate(columns)
    print(text)
    if args.write:
        OUT.write_text(text)


if __name__ == "__main__":
    main()
