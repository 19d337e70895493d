"""What was asked of the speed, beside what the committed figures say; and for what is missed, what bounds it.

python benchmarks/targets.py [--device cpu|gpu]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import BUSY

RESULTS = Path(__file__).parent / "results"
CPU_STACKS = {"cpu-n20": "n=20, d=1.2M", "cpu-n25": "n=25, d=11M", "cpu-n64": "n=64, d=1M"}
GPU_WAYS = {" (graph)": "in a CUDA graph", " (captured)": "by `robagg.Captured`", "": "called by itself"}
"""How a rule's name ends in the figures, and in words: the kernels alone, as users can have it, and without a graph."""
GPU_STACKS = ("n=20 d=1.2M float32", "n=25 d=11M float32")


def read(name: str) -> dict[str, Any] | None:
    """A file of figures, or None where it has not been measured."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


@dataclass(frozen=True)
class Target:
    """One row: what, where it is measured, how much it may be (or must be), and what bounds it where it is missed."""

    what: str
    where: str
    file: str
    find: Callable[[dict[str, Any]], float]
    bound: float
    unit: str
    explain: Callable[[], str]
    at_least: bool = False

    @property
    def value(self) -> float | None:
        found = read(self.file)
        try:
            return None if found is None else self.find(found)
        except KeyError:
            return None

    @property
    def met(self) -> bool:
        value = self.value
        return value is not None and (value >= self.bound if self.at_least else value <= self.bound)

    @property
    def wanted(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.bound:g}{self.unit}"

    @property
    def reached(self) -> str:
        value = self.value
        return "not measured" if value is None else f"{value:.2f}{self.unit}"

    @property
    def judged(self) -> str:
        return "" if self.value is None else "met" if self.met else "missed"


def explain_cpu(stack: str, rule: str) -> Callable[[], str]:
    """Which part of a rule takes the time, in times of the mean, from benchmarks/kernels.py."""

    def explain() -> str:
        n, kernels = stack.split(",")[0], read("cpu-kernels")
        if kernels is None:
            return (
                "arithmetic, as far as is known; its parts come from `python benchmarks/kernels.py`, which has not run"
            )
        part = kernels["ratios"][n]
        if rule in ("cm", "tm"):
            return f"arithmetic: the pass that sorts takes {part['median']:.1f} of it"
        text = (
            f"arithmetic: sorting, spread and Gram matrix, one pass, take {part['sketch']:.1f} means (sorting alone "
            f"{part['median']:.1f}); combining, which only reads the rows again, takes {part['combine']:.1f}"
        )
        if rule == "nnm >> tq":
            text = (
                f"arithmetic: TQ reads the rows for a sketch ({part['sketch']:.1f} means) and to combine "
                f"({part['combine']:.1f}); the mixture needs a second sketch, of mixed rows, with n products more for "
                f"each of its numbers ({part['mixed sketch']:.1f})"
            )
        busy = (kernels["machine"].get("busy") or 0) > BUSY
        return f"{text} (parts measured on a busy machine: not to be trusted)" if busy else text

    return explain


def explain_gpu(stack: str, rule: str, end: str, bound: float) -> Callable[[], str]:
    def explain() -> str:
        found = read("gpu-times")
        rows = {} if found is None else found["times"][stack]
        called, graph = rows[rule + end]["ms"], rows[f"{rule} (graph)"]["ms"]
        base = rows["x.mean(0)"]["ms"] if rule == "tq" else rows["tq (graph)"]["ms"]
        if end != " (graph)" and (graph < called / 2 or graph / base <= bound):
            return (
                f"launches: the kernels alone, in a CUDA graph, take {graph:.2f} of the {called:.2f} ms; the rest is "
                f"{'the launch, the look at the alarm and the copy' if end else 'Python and launches'}"
            )
        parts = {name: rows[f"kernel {name} (graph)"]["ms"] for name in ("sketch", "sketch of mixed rows", "combine")}
        if rule == "nnm >> tq":
            return (
                f"arithmetic: of the {graph:.2f} ms of its kernels the sketch takes {parts['sketch']:.2f}, the sketch "
                f"of mixed rows, which multiplies them by a matrix first, {parts['sketch of mixed rows']:.2f}, "
                f"combining {parts['combine']:.2f}, and the small kernels between {graph - sum(parts.values()):.2f}"
            )
        return (
            f"arithmetic: of the {graph:.2f} ms of its kernels the sketch (sorting, Gram matrix) takes "
            f"{parts['sketch']:.2f}, and combining, which reads the rows again, {parts['combine']:.2f}"
        )

    return explain


def explain_rounds() -> str:
    times = (read("cpu-rounds") or {})["ms"]
    bare, ours, theirs = (times[name] for name in ("bare gradients of 14 clients", "robagg, TQ", "ByzFL, TrMean"))
    return (
        f"arithmetic: the round takes {ours:.0f} ms, torch's gradients alone, with channels first, {bare:.0f}; 2.5 "
        f"times faster than ByzFL's {theirs:.0f} ms would be {theirs / 2.5:.0f} ms"
    )


def explain_gradients(model: str, clients: int) -> Callable[[], str]:
    def explain() -> str:
        found = read("gpu-gradients") or {"results": []}
        for row in found["results"]:
            if (row["model"], row["clients"], row["variant"]) == (model, clients, "implicit last tf32 norm"):
                return f"arithmetic: the gradients of {clients} clients alone take {row['ms']:.2f} ms"
        return "the gradients have not been measured: `python benchmarks/rounds_gpu.py`"

    return explain


def list_cpu() -> list[Target]:
    rows = []
    for rule, files, bound in (
        ("tq", ("cpu-n20", "cpu-n25"), 2.5),
        ("cm", ("cpu-n20", "cpu-n25"), 2.0),
        ("tm", ("cpu-n20", "cpu-n25"), 2.0),
        ("tq", ("cpu-n64",), 3.5),
    ):
        for file in files:
            where = CPU_STACKS[file]

            def find(found: dict[str, Any], rule: str = rule) -> float:
                return float(found["rules"][rule]["ratio"])

            what = f"{rule.upper()}, times the mean"
            rows.append(Target(what, f"CPU, {where}", file, find, bound, "x", explain_cpu(where, rule)))
    for file in ("cpu-n20", "cpu-n25"):
        explain = explain_cpu(CPU_STACKS[file], "nnm >> tq")
        where = f"CPU, {CPU_STACKS[file]}"
        rows.append(Target("NNM >> TQ, times TQ", where, file, mixed_on_cpu, 2.2, "x", explain))
    rows.append(
        Target(
            "MNIST round with TQ, times faster than ByzFL with TrMean",
            "CPU, two cores",
            "cpu-rounds",
            lambda found: found["ms"]["ByzFL, TrMean"] / found["ms"]["robagg, TQ"],
            2.5,
            "x",
            explain_rounds,
            at_least=True,
        )
    )
    return rows


def mixed_on_cpu(found: dict[str, Any]) -> float:
    return float(found["rules"]["nnm >> tq"]["ms"] / found["rules"]["tq"]["ms"])


def list_gpu() -> list[Target]:
    rows = []
    for rule, bound, what in (("tq", 4.0, "TQ, times the mean"), ("nnm >> tq", 2.2, "NNM >> TQ, times TQ")):
        for end, how in GPU_WAYS.items():
            for stack in GPU_STACKS:

                def find(found: dict[str, Any], rule: str = rule, stack: str = stack, end: str = end) -> float:
                    times = found["times"][stack]
                    return float(times[rule + end]["ms"] / times["x.mean(0)" if rule == "tq" else f"tq{end}"]["ms"])

                where = f"GPU, {stack.removesuffix(' float32').replace(' ', ', ')}, {how}"
                rows.append(Target(what, where, "gpu-times", find, bound, "x", explain_gpu(stack, rule, end, bound)))
    for what, key, bound, model, clients in (
        ("MNIST round with TQ", "CNN, n=20, f=6, tq, tf32", 1.5, "cnn", 14),
        ("ResNet-20 round with TQ, n=25", "ResNet-20, n=25, f=4, tq, tf32", 8.0, "resnet20", 25),
    ):

        def find_round(found: dict[str, Any], key: str = key) -> float:
            return float(found["ms"][key])

        rows.append(Target(what, "GPU", "gpu-rounds", find_round, bound, " ms", explain_gradients(model, clients)))
    return rows


def show(rows: list[Target]) -> None:
    print(f"\n{'target':<60}{'where':<44}{'asked':>16}{'measured':>14}")
    for row in rows:
        print(f"{row.what:<60}{row.where:<44}{row.wanted:>16}{row.reached:>14}  {row.judged}")
        if row.judged == "missed":
            print(f"    bound by {row.explain()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), help="these rows alone")
    options = parser.parse_args()
    show((list_cpu() if options.device != "gpu" else []) + (list_gpu() if options.device != "cpu" else []))


if __name__ == "__main__":
    main()
