"""What one hostile reply costs in memory, beside what is there when the framework has delivered it.

python benchmarks/hostile_memory.py [--framework server] [--size 1000] [--json PATH]

The model has 1 MB. Eleven clients reply; one of them with `size` MB. Each kind of reply is measured in a process of its
own: by how much the round raises its memory, less what the same round costs where that client is honest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from memory import MARK, measure_peak

N, MB = 11, 10**6
Numbers = dict[str, Any]


def draw(seed: int) -> Numbers:
    rng = np.random.default_rng(seed)
    return {"weight": rng.standard_normal((250, 999), np.float32), "bias": rng.standard_normal(250, np.float32)}


KINDS: dict[str, Callable[[int], tuple[Any, Any, Any]]] = {
    "honest": lambda size: (draw(1), 10, {"loss": 1.0}),
    "an array that is too long": lambda size: (draw(1) | {"weight": np.ones(size // 4, np.float32)}, 10, {}),
    "an array too many": lambda size: (draw(1) | {"more": np.ones(size // 4, np.float32)}, 10, {}),
    "arrays of 1 kB too many": lambda size: (
        draw(1) | {str(i): np.ones(250, np.float32) for i in range(size // 1000)},
        10,
        {},
    ),
    "numbers of another kind": lambda size: (draw(1) | {"weight": np.ones(size // 8, np.complex64)}, 10, {}),
    "text in place of an array": lambda size: (draw(1) | {"bias": "x" * size}, 10, {}),
    "a size that is a text": lambda size: (draw(1), "9" * size, {}),
    "one metric of many numbers": lambda size: (draw(1), 10, {"loss": np.ones(size // 32).tolist()}),
    "metrics of 100 bytes each": lambda size: (draw(1), 10, {f"{i:051}": 1.0 for i in range(size // 100)}),
}
"""Arrays, the claimed size and metrics, of about so many bytes."""


def serve(kind: str, size: int) -> Callable[[], Any]:
    from robagg.server import Reply, RobustServer

    server, model = RobustServer("tq", f=2), draw(0)
    replies = {f"site-{i}": Reply(draw(i), size=10, metrics={"loss": 1.0}) for i in range(1, N)}
    arrays, claim, metrics = KINDS[kind](size)
    replies["site-0"] = Reply(arrays, size=claim, metrics=metrics)
    return lambda: server.aggregate(1, replies, model=model)


def serve_flower(kind: str, size: int) -> Callable[[], Any]:
    sys.path[0] = str(Path(__file__).parents[1] / "tests")  # where `flower` is not the benchmark of that name
    from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

    from flower.federation import answer, ask, fill, pack
    from robagg.flower import RobustStrategy

    strategy = RobustStrategy("tq", f=2)
    arrays, claim, metrics = KINDS[kind](size)
    if isinstance(claim, str) or any(isinstance(value, str) for value in arrays.values()):
        raise ValueError("Flower's records do not take it")
    contents = [fill(draw(i)) for i in range(N)]
    contents[0] = RecordDict({"arrays": pack(arrays), "metrics": MetricRecord(metrics | {"num-examples": claim})})
    del arrays, metrics
    sent: ArrayRecord = ArrayRecord({name: Array(value) for name, value in draw(0).items()})
    replies = answer(ask(strategy, sent, N), contents)
    return lambda: strategy.aggregate_train(1, replies)


def serve_nvflare(kind: str, size: int) -> Callable[[], Any]:
    from nvflare.app_common.abstract.fl_model import FLModel
    from nvflare.app_common.utils.fl_model_utils import FLModelUtils

    from robagg.nvflare import RobustAggregator

    aggregator = RobustAggregator("tq", f=2)
    task = FLModelUtils.to_shareable(FLModel(params=draw(0), current_round=0))
    replies = []
    for i in range(N):
        arrays, claim, metrics = KINDS["honest" if i else kind](size)
        meta = {"NUM_STEPS_CURRENT_ROUND": claim, "client_name": f"site-{i}"}
        replies.append(FLModel(params=arrays, metrics=metrics, meta=meta))
        aggregator._note_asked(f"site-{i}", task)

    def run() -> Any:
        for reply in replies:
            aggregator.accept_model(reply)
        return aggregator.aggregate_model()

    return run


FRAMEWORKS = {"server": serve, "flower": serve_flower, "nvflare": serve_nvflare}


def measure_one(framework: str, kind: str, size: int) -> float:
    FRAMEWORKS[framework]("honest", size)()  # threads and libraries are up before the mark is set
    return measure_peak(FRAMEWORKS[framework](kind, size)) * 2**20 / MB


def ask_one(framework: str, kind: str, size: int) -> float | str:
    """`measure_one` in another process; the last line of what it says where it fails."""
    command = [sys.executable, __file__, "--framework", framework, "--one", kind, "--size", str(size // MB)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1][:200]
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="server")
    parser.add_argument("--size", type=int, default=1000, help="MB")
    parser.add_argument("--one", help="this kind, in this process")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not MARK.exists():
        sys.exit("this needs Linux, which tells a process its peak of memory")
    if options.one:
        print(json.dumps(measure_one(options.framework, options.one, options.size * MB)))
        return
    rows = {kind: ask_one(options.framework, kind, options.size * MB) for kind in KINDS}
    honest = rows.pop("honest")
    if isinstance(honest, str):
        sys.exit(honest)
    costs = {kind: row if isinstance(row, str) else round(row - honest, 2) for kind, row in rows.items()}
    print(f"{options.framework}, one reply of {options.size} MB: an honest one costs {honest:.1f} MB")
    for kind, cost in costs.items():
        print(f"  {kind:>28}: {cost if isinstance(cost, str) else f'{cost:.1f} MB more'}")
    if options.json:
        options.json.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()
