"""Writes docs/performance.md and its picture from the JSON files in benchmarks/results.

python benchmarks/document.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.png"
GPU_RULES = ("mean", "cm", "tm", "krum", "rfa", "huber", "mca", "tq", "nnm >> tq")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def tabulate(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def write_cpu(name: str) -> str:
    result = read(name)
    rows = []
    for rule, row in result["rules"].items():
        target = "" if row["target"] is None else f"{row['target']:g}"
        peer = result["peers"].get(rule)
        more = [f"`{peer['call']}`", f"{peer['gain']:.0f}"] if peer else ["", ""]
        rows.append([f"`{rule}`", f"{row['ms']:.1f}", f"{row['ratio']:.2f}", target, *more])
    where = (
        f"n={result['n']}, d={result['d']:,}, float32, {result['kernel']}; `x.mean(0)` takes {result['mean_ms']:.1f} ms"
    )
    head = ["rule", "ms", "times mean", "target", "ByzFL's", "times faster than it"]
    return f"{where}\n\n{tabulate(head, rows)}"


def write_gpu() -> str:
    times = read("gpu-times")["times"]
    text = []
    for shape, rows in times.items():
        if "float32" not in shape or "bfloat" in shape:
            continue
        table = []
        for rule in GPU_RULES:
            if rule in rows:
                eager, graph = rows[rule], rows.get(f"{rule} (graph)")
                captured = [f"{graph['ms']:.3f}", f"{graph['ratio']:.2f}"] if graph else ["", ""]
                table.append([f"`{rule}`", f"{eager['ms']:.3f}", f"{eager['ratio']:.2f}", *captured])
        head = ["rule", "ms, called", "times mean", "ms, in a CUDA graph", "times mean"]
        text.append(f"{shape}; `x.mean(0)` takes {rows['x.mean(0)']['ms']:.3f} ms\n\n{tabulate(head, table)}")
    return "\n".join(text)


def write_growth() -> str:
    rows = [
        [
            shape.removeprefix("growth "),
            f"{row['x.mean(0)']['ms']:.3f}",
            f"{row['tq']['ms']:.3f}",
            f"{row['tq']['ratio']:.1f}",
        ]
        for shape, row in read("gpu-growth")["times"].items()
    ]
    return tabulate(["shape", "mean, ms", "TQ called, ms", "times mean"], rows)


def write_rounds() -> str:
    gpu, cpu = read("gpu-rounds"), read("cpu-rounds")
    rows = [[name, f"{ms:.2f}"] for name, ms in gpu["ms"].items()]
    bare = cpu["ms"]["bare gradients of 14 clients"]
    other = [[name, f"{ms:.0f}", f"{ms / bare:.2f}"] for name, ms in cpu["ms"].items()]
    return (
        f"On a CPU ({cpu['machine']['processor']}, {cpu['machine']['threads']} threads): the paper's CNN, n=20, f=6, "
        f"b=32, IPM.\n\n{tabulate(['', 'ms a round', 'times bare gradients'], other)}\n"
        f"On one {gpu['device']}, the whole round as a CUDA graph:\n\n{tabulate(['', 'ms a round'], rows)}"
    )


def draw() -> None:
    from matplotlib.figure import Figure

    result = read("cpu-n20")
    gpu = read("gpu-times")["times"]["n=20 d=1.2M float32"]
    names = [rule for rule in GPU_RULES if rule in result["rules"]]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    axes.bar(
        [p - 0.2 for p in places],
        [result["rules"][r]["ratio"] for r in names],
        0.4,
        label="CPU, two cores",
        color="#0072B2",
    )
    axes.bar(
        [p + 0.2 for p in places],
        [gpu[f"{r} (graph)"]["ratio"] for r in names],
        0.4,
        label="H200, in a CUDA graph",
        color="#E69F00",
    )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(list(places), names)
    axes.set_ylabel("time, as a multiple of x.mean(0)")
    axes.set_title("What robustness costs: n=20, d=1.2 million, float32")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120)


def main() -> None:
    machine = read("cpu-n20")["machine"]
    draw()
    PAGE.write_text(f"""# Performance

Every figure on this page comes from a JSON file in `benchmarks/results`, and `python benchmarks/document.py` writes the
page from them. Times are medians of runs that take turns on one machine; what counts is the ratio to `x.mean(0)`, which
must read the same numbers.

![Time of each rule as a multiple of the mean, on a CPU and on a GPU](images/performance.png)

## Aggregation on a CPU

`make bench` on {machine["processor"]}, {machine["cores"]} cores, torch {machine["torch"]}.

{write_cpu("cpu-n20")}
{write_cpu("cpu-n25")}
{write_cpu("cpu-n64")}
The sketch of TQ is bound by arithmetic, not by memory: at n=20 the sorting network and the Gram matrix each take about
as long as reading the rows. Combining is bound by memory.

## Aggregation on a GPU

`python benchmarks/gpu.py` on one NVIDIA H200. Called by itself, a rule on a small stack waits for Python and for some
thirty launches; in a CUDA graph, as a training round uses it, only the kernels count.

{write_gpu()}
Growth with n and d (TQ, called; beyond n=64 the plain torch path runs):

{write_growth()}
## Training

{write_rounds()}""")
    print(f"written: {PAGE.relative_to(ROOT)}, {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
