"""The hostile matrix over Flower's own strategies and RobustStrategy: 11 replies, of which the first is hostile.

python docs/flower/hostile.py            prints the table
python docs/flower/hostile.py --write    writes it to docs/flower/hostile.md
"""
# ruff: noqa: E402

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "examples" / "flower")]

import numpy as np
from flwr.app import Error, MetricRecord
from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, FedTrimmedAvg, Krum, MultiKrum

from flower.federation import draw_model, draw_update, fill, flatten, pack, run_round, unpack
from flower.hostile import BROKEN, FAR
from robagg.flower import RobustStrategy

N = 11
OUT = ROOT / "docs" / "flower" / "hostile.md"
STRATEGIES: dict[str, Callable[[], FedAvg]] = {
    "FedAvg": FedAvg,
    "FedMedian": FedMedian,
    "FedTrimmedAvg": lambda: FedTrimmedAvg(beta=0.2),
    "Krum": lambda: Krum(num_malicious_nodes=2),
    "MultiKrum": lambda: MultiKrum(num_malicious_nodes=2, num_nodes_to_select=9),
    "Bulyan": lambda: Bulyan(num_malicious_nodes=2),
    "RobustStrategy(TQ)": lambda: RobustStrategy("tq", f=2),
    "RobustStrategy(NNM >> CM)": lambda: RobustStrategy("nnm >> cm", f=2),
}
ATTACKS = {
    "opposite update, ten times": FAR["ipm"],
    "opposite update, 10^12 examples": FAR["many-examples"],
    "0 examples": FAR["zero-examples"],
    "numbers of 3e38": FAR["huge"],
    "NaN": BROKEN["nan"],
    "one Inf": BROKEN["one-inf"],
    "wrong shape": BROKEN["wrong-shape"],
    "extra key": BROKEN["extra-keys"],
    "missing key": BROKEN["missing-key"],
    "complex numbers": BROKEN["complex"],
    "strings": BROKEN["strings"],
    "bytes that are no array": BROKEN["corrupt"],
    "cut short": BROKEN["cut-short"],
    "NaN examples": BROKEN["nan-examples"],
    "-5 examples": BROKEN["negative-examples"],
    "an empty reply": BROKEN["nothing"],
    "an error": None,
}


def judge(strategy: FedAvg, attack: Any) -> str:
    """In a word, what becomes of the model."""
    model = draw_model()
    contents: list[Any] = [fill(draw_update(model, i)) for i in range(N)]
    metrics = MetricRecord({"num-examples": 10, "loss": 1.0})
    update = pack(draw_update(model, 0))
    contents[0] = Error(0, "it failed") if attack is None else attack(pack(model), update, metrics)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            arrays, _ = run_round(strategy, pack(model), contents)
            result = unpack(arrays)
    except Exception as error:
        return f"**run ends** ({type(error).__name__})"
    if any(np.iscomplexobj(value) for value in result.values()):
        return "**complex model**"
    if any(value.dtype.kind not in "f" for value in result.values()):
        return f"**{next(iter(result.values())).dtype} model**"
    if {name: value.shape for name, value in result.items()} != {name: value.shape for name, value in model.items()}:
        return "**other shapes**"
    if not all(np.isfinite(value).all() for value in result.values()):
        return "**NaN model**"
    honest = [flatten(draw_update(model, i)) for i in range(1, N)]
    centre = np.mean(honest, axis=0)
    spread = max(np.linalg.norm(row - centre) for row in honest)
    away = float(np.linalg.norm(flatten(result) - centre) / spread)
    return f"**moved** ({away:.2g})" if away > 1.1 else "ok"


def tabulate() -> str:
    lines = ["# One hostile reply of eleven", "", "Made by `docs/flower/hostile.py`.", ""]
    lines += [
        f"| the hostile one of {N} sends | " + " | ".join(STRATEGIES) + " |",
        "|---" * (1 + len(STRATEGIES)) + "|",
    ]
    for name, attack in ATTACKS.items():
        cells = [judge(make(), attack) for make in STRATEGIES.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("")
    lines.append(
        "ok: a real, finite model of the right shapes that is about as near to the honest mean as an honest client. "
        "moved: its distance to the honest mean, in units of the farthest honest client's."
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    text = tabulate()
    print(text)
    if args.write:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text)


if __name__ == "__main__":
    main()
