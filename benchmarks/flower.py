"""Time and peak memory of one aggregation in Flower: RobustStrategy beside Flower's own strategies, in one run.

python benchmarks/flower.py                 prints the table
python benchmarks/flower.py --write         writes it to docs/flower/time.md
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, Krum
from flwr.supercore.task_identity import TaskIdentity

from robagg.flower import RobustStrategy
from timing import describe_machine, take_turns

N, F = 20, 4
OUT = Path(__file__).parents[1] / "docs" / "flower" / "time.md"
STRATEGIES: dict[str, Callable[[], FedAvg]] = {
    "FedAvg": FedAvg,
    "RobustStrategy(TQ)": lambda: RobustStrategy("tq", f=F),
    "RobustStrategy(NNM >> CM)": lambda: RobustStrategy("nnm >> cm", f=F),
    "RobustStrategy(RFA)": lambda: RobustStrategy("rfa", f=F),
    "FedMedian": FedMedian,
    "Krum": lambda: Krum(num_malicious_nodes=F),
    "Bulyan": lambda: Bulyan(num_malicious_nodes=F),
}
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


def measure_memory(name: str, shapes: Shapes) -> float:
    """MiB by which one aggregation raises the process's peak."""
    run = prepare(name, *make_replies(shapes))
    gc.collect()
    # getrusage would tell the peak of the process that started this one; the kernel's own mark can be set back.
    Path("/proc/self/clear_refs").write_text("5")
    before = read_peak()
    run()
    return read_peak() - before


def read_peak() -> float:
    """The peak of this process since the mark was set back, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def compare(shapes: Shapes, label: str, seconds: float, least: int) -> list[str]:
    model, replies = make_replies(shapes)
    times = take_turns({name: prepare(name, model, replies) for name in STRATEGIES}, seconds=seconds, least=least)
    rows = []
    for name, time in times.items():
        command = [sys.executable, __file__, "--memory", name, "--label", label]
        memory = float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        ratio = time / times["FedAvg"]
        rows.append(f"| {label} | {name} | {1e3 * time:.0f} ms | {ratio:.2f} | {memory:.0f} MiB |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--memory", choices=list(STRATEGIES))
    parser.add_argument("--label")
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    sizes = {"1.2M": shape_cnn(), "11M": shape_resnet()}
    if args.memory:
        print(json.dumps(measure_memory(args.memory, sizes[args.label])))
        return
    machine = describe_machine()
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
        *compare(sizes["1.2M"], "1.2M", seconds=20, least=5),
        *compare(sizes["11M"], "11M", seconds=60, least=3),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text)


if __name__ == "__main__":
    main()
