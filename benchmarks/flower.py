"""One aggregation in Flower: Flower's own strategies beside RobustStrategy, on the same replies, in one run.

python benchmarks/flower.py [--size 1.2M|11M] [--json PATH]   time and peak memory, printed and kept
python benchmarks/flower.py --write                            docs/flower/time.md, from what was kept
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, FedTrimmedAvg, Krum, MultiKrum
    from flwr.supercore.task_identity import TaskIdentity
except ModuleNotFoundError as error:
    if error.name != "flwr":  # it is there, but not as this script knows it: that must be seen
        raise
    print("Flower is not installed here (pip install 'robagg[flower]'): its strategies were not measured")
    raise SystemExit(0) from None

from memory import measure_peak
from robagg.flower import RobustStrategy
from timing import describe_machine, take_turns

N, F = 20, 4
"""Bulyan wants n >= 4f + 3, so that f is 4 at most."""
RESULTS = Path(__file__).parent / "results"
OUT = Path(__file__).parents[1] / "docs" / "flower" / "time.md"
STRATEGIES: dict[str, Callable[[], FedAvg]] = {
    "FedAvg": FedAvg,
    "FedMedian": FedMedian,
    "FedTrimmedAvg": lambda: FedTrimmedAvg(beta=F / N),
    "Krum": lambda: Krum(num_malicious_nodes=F),
    "MultiKrum": lambda: MultiKrum(num_malicious_nodes=F, num_nodes_to_select=N - F),
    "Bulyan": lambda: Bulyan(num_malicious_nodes=F),
    "RobustStrategy(mean)": lambda: RobustStrategy("mean", f=F),
    "RobustStrategy(CM)": lambda: RobustStrategy("cm", f=F),
    "RobustStrategy(TM)": lambda: RobustStrategy("tm", f=F),
    "RobustStrategy(Krum)": lambda: RobustStrategy("krum", f=F),
    "RobustStrategy(MultiKrum)": lambda: RobustStrategy("multikrum", f=F),
    "RobustStrategy(RFA)": lambda: RobustStrategy("rfa", f=F),
    "RobustStrategy(TQ)": lambda: RobustStrategy("tq", f=F),
    "RobustStrategy(NNM >> CM)": lambda: RobustStrategy("nnm >> cm", f=F),
}
PAIRS = {
    "FedAvg": "RobustStrategy(mean)",
    "FedMedian": "RobustStrategy(CM)",
    "FedTrimmedAvg": "RobustStrategy(TM)",
    "Krum": "RobustStrategy(Krum)",
    "MultiKrum": "RobustStrategy(MultiKrum)",
    "Bulyan": "RobustStrategy(TQ)",
}
"""Flower's strategy -> ours that stands beside it. The first three are defined alike."""
Shapes = dict[str, tuple[int, ...]]


def shape_cnn() -> Shapes:
    """The MNIST network of the paper: 1.2 million numbers in 8 arrays."""
    return {"c1": (32, 1, 3, 3), "b1": (32,), "c2": (64, 32, 3, 3), "b2": (64,), "f1": (128, 9216), "g1": (128,),
            "f2": (10, 128), "g2": (10,)}  # fmt: skip


def shape_resnet() -> Shapes:
    """ResNet-18 for CIFAR-10: 11 million numbers in 122 arrays, BatchNorm's statistics among them."""
    shapes: Shapes = {"conv1.weight": (64, 3, 3, 3), "fc.weight": (10, 512), "fc.bias": (10,)}
    norms = {"bn1": 64}
    before = 64
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name = f"layer{stage}.{block}"
            shapes |= {f"{name}.conv1.weight": (width, before, 3, 3), f"{name}.conv2.weight": (width, width, 3, 3)}
            norms |= {f"{name}.bn1": width, f"{name}.bn2": width}
            if before != width:
                shapes[f"{name}.down.weight"] = (width, before, 1, 1)
                norms[f"{name}.downbn"] = width
            before = width
    for name, width in norms.items():
        shapes |= {f"{name}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")}
        shapes[f"{name}.num_batches_tracked"] = ()
    return shapes


def draw(shapes: Shapes, rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    return {
        name: np.array(1) if name.endswith("tracked") else scale * rng.standard_normal(shape, dtype=np.float32)
        for name, shape in shapes.items()
    }


def make_replies(shapes: Shapes) -> tuple[ArrayRecord, list[Message]]:
    rng = np.random.default_rng(0)
    model = draw(shapes, rng, 0.05)
    replies = []
    for node in range(N):
        noise = draw(shapes, rng, 0.001)
        arrays = ArrayRecord({name: Array(np.asarray(w + noise[name], w.dtype)) for name, w in model.items()})
        metrics = MetricRecord({"num-examples": 100, "loss": 1.0})
        message = Message(RecordDict({"arrays": arrays, "metrics": metrics}), dst_node_id=1, message_type="train")
        message.metadata.__dict__["_src_node_id"] = 100 + node
        replies.append(message)
    return ArrayRecord({name: Array(w) for name, w in model.items()}), replies


class Grid:
    def get_node_ids(self) -> list[int]:
        return [100 + node for node in range(N)]


def prepare(name: str, model: ArrayRecord, replies: list[Message]) -> Callable[[], Any]:
    """One aggregation by that strategy, which has been told the model."""
    strategy = STRATEGIES[name]()
    strategy.configure_train(1, model, ConfigRecord(), Grid())  # type: ignore[arg-type]
    return lambda: strategy.aggregate_train(1, [copy(reply) for reply in replies])


def copy(reply: Message) -> Message:
    """Another message with the same arrays: some strategies empty the records that they read."""
    content = RecordDict({name: record.copy() for name, record in reply.content.items()})
    twin = Message(content, dst_node_id=1, message_type="train")
    twin.metadata.__dict__["_src_node_id"] = reply.metadata.src_node_id
    return twin


def agree(model: ArrayRecord, replies: list[Message]) -> dict[str, float]:
    """The largest difference between Flower's weights and ours, beside the largest step from the model.

    BatchNorm's statistics are left out: of those RobustStrategy takes the median whatever the rule.
    """
    gaps = {}
    weights = [name for name in model if not name.endswith(("running_mean", "running_var", "tracked"))]
    for theirs, ours in list(PAIRS.items())[:3]:
        one, other = (dict(prepare(name, model, replies)()[0]) for name in (theirs, ours))
        step = max(np.abs(one[name].numpy() - model[name].numpy()).max() for name in weights)
        gap = max(np.abs(one[name].numpy() - other[name].numpy()).max() for name in weights)
        gaps[theirs] = float(gap / step)
    return gaps


def ask_memory(name: str, size: str) -> float:
    """MiB by which one aggregation raises the peak of a process that holds the replies."""
    command = [sys.executable, __file__, "--memory", name, "--size", size]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure(size: str, shapes: Shapes, seconds: float, least: int) -> dict[str, Any]:
    machine = describe_machine()
    model, replies = make_replies(shapes)
    gaps = agree(model, replies)
    times = take_turns({name: prepare(name, model, replies) for name in STRATEGIES}, seconds=seconds, least=least)
    del model, replies
    with ThreadPoolExecutor(2) as pool:
        memory = list(pool.map(lambda name: ask_memory(name, size), STRATEGIES))
    d = sum(int(np.prod(shape)) for shape in shapes.values())
    rows = {name: {"ms": 1000 * times[name], "mib": mib} for name, mib in zip(STRATEGIES, memory, strict=True)}
    return {"machine": machine, "n": N, "f": F, "d": d, "arrays": len(shapes), "gaps": gaps, "strategies": rows}


def show(size: str, result: dict[str, Any]) -> None:
    rows = result["strategies"]
    print(f"\none aggregation in Flower: {N} replies of {size} values in {result['arrays']} arrays, f={F}")
    print(f"{'strategy':<28}{'ms':>9}{'of FedAvg':>11}{'MiB':>8}")
    for name, row in rows.items():
        print(f"{name:<28}{row['ms']:>9.1f}{row['ms'] / rows['FedAvg']['ms']:>11.2f}{row['mib']:>8.0f}")
    gaps = ", ".join(f"{name} {gap:.1e}" for name, gap in result["gaps"].items())
    print(f"difference from RobustStrategy's value, beside the largest step: {gaps}")


def write() -> None:
    """docs/flower/time.md from the files in benchmarks/results."""
    found = {size: json.loads(path_of(size).read_text()) for size in ("1.2M", "11M") if path_of(size).exists()}
    machine = next(iter(found.values()))["machine"]
    lines = [
        "# Time of one aggregation",
        "",
        "Made by `benchmarks/flower.py`.",
        "",
        f"Aggregation of {N} replies, medians of runs in turn, on {machine['processor']}, {machine['cores']} cores. "
        "Memory is what one aggregation adds to the peak of the process that holds the replies.",
        "",
        "| parameters | strategy | time | of FedAvg | memory |",
        "|---|---|---|---|---|",
    ]
    for size, result in found.items():
        rows = result["strategies"]
        for name, row in rows.items():
            ratio = row["ms"] / rows["FedAvg"]["ms"]
            lines.append(f"| {size} | {name} | {row['ms']:.0f} ms | {ratio:.2f} | {row['mib']:.0f} MiB |")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    print(f"written: {OUT.name}, from {', '.join(path_of(size).name for size in found)}")


def path_of(size: str) -> Path:
    return RESULTS / f"cpu-flower-{size}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("1.2M", "11M"), default="1.2M")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--memory", choices=list(STRATEGIES), help="peak memory of this one, in this process")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    shapes = shape_cnn() if options.size == "1.2M" else shape_resnet()
    if options.memory:
        print(json.dumps(measure_peak(prepare(options.memory, *make_replies(shapes)))))
        return
    if options.write:
        write()
        return
    result = measure(options.size, shapes, options.seconds, 3 if options.size == "1.2M" else 2)
    show(options.size, result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
