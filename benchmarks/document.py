"""Writes docs/performance.md and its pictures from the JSON files in benchmarks/results.

python benchmarks/document.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pictures
from accuracy import write_again, write_precision
from targets import GPU_WAYS, list_cpu, list_gpu, read
from texts import tabulate, wrap
from timing import BUSY

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
SCALE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- many clients: written by benchmarks/document.py -->", "<!-- end -->"
GPU_RULES = ("mean", "cm", "tm", "krum", "rfa", "huber", "mca", "tq", "nnm >> tq")
FLOWER = {
    "FedAvg": "mean",
    "FedMedian": "CM",
    "FedTrimmedAvg": "TM",
    "Krum": "Krum",
    "MultiKrum": "MultiKrum",
    "Bulyan": "TQ",
}
IN_FLOWER = {"mean": "FedAvg", "cm": "FedMedian", "tm": "FedTrimmedAvg", "krum": "Krum", "multikrum": "MultiKrum"}


def need(name: str) -> dict[str, Any]:
    """A file of figures that the page cannot do without."""
    found = read(name)
    if found is None:
        raise SystemExit(f"benchmarks/results/{name}.json is not there: run `make bench` first")
    return found


def tell_busy(result: dict[str, Any]) -> str:
    """A sentence where others used the machine, so that nobody takes those times for more than they are."""
    busy = result["machine"].get("busy")
    if busy is None or busy <= BUSY:
        return ""
    return f"\nWhen this was measured others kept {busy:.0%} of the machine busy: do not trust its times and ratios.\n"


def write_targets() -> str:
    rows = [
        [row.what, row.where, row.wanted, row.reached, row.judged, row.explain() if row.judged == "missed" else ""]
        for row in (*list_cpu(), *list_gpu())
    ]
    return tabulate(["what", "where", "asked", "measured", "", "what bounds it"], rows)


def write_cpu(name: str) -> str:
    result = need(name)
    libraries = list(result["peers"])
    rows = []
    if "copy_ms" in result:
        ratio = result["copy_ms"] / result["mean_ms"]
        rows.append(["a copy of x", f"{result['copy_ms']:.1f}", f"{ratio:.2f}", "", *[""] * 2 * len(libraries)])
    for rule, row in result["rules"].items():
        target = "" if row["target"] is None else f"{row['target']:g}"
        more = []
        for library in libraries:
            peer = result["peers"][library].get(rule)
            if peer is None:
                more += ["", ""]
            else:
                more += [f"`{peer['call']}`", "cannot run" if "error" in peer else f"{peer['gain']:.0f}"]
        rows.append([f"`{rule}`", f"{row['ms']:.1f}", f"{row['ratio']:.2f}", target, *more])
    where = (
        f"n={result['n']}, d={result['d']:,}, float32, {result['kernel']}; `x.mean(0)` takes {result['mean_ms']:.1f} ms"
    )
    head = ["rule", "ms", "times mean", "target"]
    for library in libraries:
        head += [f"{library}'s", "times faster than it"]
    broken = [
        f"{library}'s `{peer['call']}` cannot run: {peer['error']}.\n"
        for library in libraries
        for peer in result["peers"][library].values()
        if "error" in peer
    ]
    return f"{where}\n\n{tabulate(head, rows)}{''.join(broken)}{tell_busy(result)}"


def write_cpu_growth() -> str:
    growth = need("cpu-growth")
    head = ["n", "d", "mean, ms", "CM, ms", "times mean", "Krum, ms", "times mean", "TQ, ms", "times mean"]
    rows = []
    for row in (*growth["n"], *growth["d"]):
        ms = row["ms"]
        cells = [cell for rule in ("cm", "krum", "tq") for cell in (show_ms(ms[rule]), f"{ms[rule] / ms['mean']:.1f}")]
        rows.append([str(row["n"]), f"{row['d']:,}", show_ms(ms["mean"]), *cells])
    return f"{tabulate(head, rows)}{tell_busy(growth)}"


def write_thousands() -> str:
    """The table of many clients, as multiples of the mean."""
    rows = need("cpu-growth")["many"]
    rules = [rule for rule in rows[0]["ms"] if rule != "mean"]
    head = ["n", "d", "mean, ms", *(f"`{rule}`" for rule in rules)]
    cells = [
        [f"{row['n']:,}", f"{row['d']:,}", show_ms(row["ms"]["mean"])]
        + [f"{row['ms'][rule] / row['ms']['mean']:.1f}" for rule in rules]
        for row in rows
    ]
    return tabulate(head, cells)


def replace_many(page: str) -> str:
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{write_thousands()}\n{END}{rest.split(END, 1)[1]}"


def show_ms(ms: float) -> str:
    return f"{ms:.2f}" if ms < 10 else f"{ms:.0f}"


def write_dicts() -> str:
    result, parts = need("cpu-kinds"), []
    for model, row in result["models"].items():
        rows = [
            [f"`{rule}`", f"{ms['dicts']:.1f}", f"{ms['dicts'] / row['torch_ms']:.2f}", f"{ms['tensor']:.1f}"]
            for rule, ms in row["ms"].items()
        ]
        parts.append(
            wrap(
                f"{model}, n={row['n']}: {row['leaves']} tensors, {row['d']:,} values; torch takes "
                f"{row['torch_ms']:.1f} ms to stack and average them one by one"
            )
            + "\n"
            + tabulate(["rule", "ms", "times that", "ms as one tensor"], rows)
        )
    return tell_busy(result) + "\n".join(parts)


def write_kinds() -> str:
    result = need("cpu-kinds")
    dtypes = [[name, *(f"{row[text]:.1f}" for text in ("torch", "cm", "tq"))] for name, row in result["dtypes"].items()]
    verdicts = [
        [f"`{rule}`", f"{row['called']:.1f}", f"{row['explained']:.1f}"] for rule, row in result["verdicts"].items()
    ]
    return (
        f"n={result['n']}, d={result['d']:,}, milliseconds\n\n"
        + tabulate(["dtype", "`x.mean(0)`", "`cm`", "`tq`"], dtypes)
        + "\nA verdict (`explain`) also tells each row's weight and its distance from the value:\n\n"
        + tabulate(["rule", "called", "with a verdict"], verdicts)
    )


def write_memory() -> str:
    memory, flower = need("cpu-memory"), read("cpu-flower-1.2M")
    mib, strategies = memory["mib"], (flower or {"strategies": {}})["strategies"]
    libraries = [library for library in ("ByzFL", "byzpy") if library in mib]
    rows = []
    for rule, taken in mib["robagg"].items():
        others = [show_mib(mib[library].get(rule)) for library in libraries]
        name = IN_FLOWER.get(rule, "")
        there = f"{strategies[name]['mib']:.0f} ({name})" if name in strategies else ""
        rows.append([f"`{rule}`", show_mib(taken), *others, there])
    if "Bulyan" in strategies:
        rows.append(["", "", *[""] * len(libraries), f"{strategies['Bulyan']['mib']:.0f} (Bulyan)"])
    head = ["rule", "robagg, MiB", *[f"{library}, MiB" for library in libraries], "Flower's, MiB"]
    shape, row = f"n={memory['n']}, d={memory['d']:,}, float32", memory["stack"] / memory["n"]
    text = (
        f"What one call adds to the peak of its process, beside the stack of {memory['stack']:.0f} MiB ({shape}), its "
        f"result of {row:.1f} MiB included; each in a process of its own. Beside `nnm >> tq` stands their NNM alone. "
        "ByzFL's Krum hands out a view of its input. Flower's hold the same number of values as messages."
    )
    return f"{wrap(text)}\n{tabulate(head, rows)}"


def show_mib(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float | int) else "cannot run"


def write_flower() -> str:
    text: list[str] = []
    gaps: list[float] = []
    for size in ("1.2M", "11M"):
        result = read(f"cpu-flower-{size}")
        if result is None:
            continue
        found = result["strategies"]
        rows = []
        for name, rule in FLOWER.items():
            theirs, ours = found[name], found[f"RobustStrategy({rule})"]
            gain = f"{theirs['ms'] / ours['ms']:.1f}"
            rows.append(
                [
                    name,
                    f"{theirs['ms']:.0f}",
                    f"{theirs['mib']:.0f}",
                    rule,
                    f"{ours['ms']:.0f}",
                    f"{ours['mib']:.0f}",
                    gain,
                ]
            )
        gaps += result["gaps"].values()
        head = ["Flower's strategy", "ms", "MiB", "`RobustStrategy` with", "ms", "MiB", "times faster"]
        text.append(
            f"n={result['n']}, d={result['d']:,} in {result['arrays']} arrays, f={result['f']}\n\n"
            f"{tabulate(head, rows)}{tell_busy(result)}"
        )
    if not text:
        return "Not measured: where `make bench` ran, Flower was not installed (`pip install 'robagg[flower]'`).\n"
    alike = wrap(
        "FedAvg, FedMedian and FedTrimmedAvg are defined as our mean, CM and TM: the weights differ by "
        f"{max(gaps):.0e} of the largest step at most, which is float32 rounding of the models. Of BatchNorm's "
        "statistics ours takes the median whatever the rule."
    )
    return "\n".join([*text, alike])


def write_gpu() -> str:
    times = need("gpu-times")["times"]
    text = []
    for shape, rows in times.items():
        if "float32" not in shape:
            continue
        table = []
        for rule in ("copy of x", *GPU_RULES):
            if rule in rows:
                ways = [rows.get(rule + end) for end in reversed(GPU_WAYS)]
                told = [[f"{way['ms']:.3f}", f"{way['ratio']:.2f}"] if way else ["", ""] for way in ways]
                table.append([rule if " of " in rule else f"`{rule}`", *(cell for pair in told for cell in pair)])
        for name, row in rows.items():
            if name.startswith(("ByzFL ", "byzpy ")):
                library, call = name.split(" ", 1)
                table.append([f"{library} `{call}`", f"{row['ms']:.3f}", f"{row['ratio']:.2f}", "", "", "", ""])
        head = ["rule", "ms, called", "times mean", "ms, captured", "times mean", "ms, in a CUDA graph", "times mean"]
        text.append(f"{shape}; `x.mean(0)` takes {rows['x.mean(0)']['ms']:.3f} ms\n\n{tabulate(head, table)}")
    return "\n".join(text) + write_gpu_memory()


def write_gpu_memory() -> str:
    """Peak memory on the GPU; the first files held TQ's alone."""
    found = need("gpu-times")
    rows = []
    for shape, times in found["times"].items():
        if "float32" in shape:
            taken = found.get("memory", {}).get(shape) or {"tq": times.get("tq peak MiB beside x")}
            rows += [
                [shape, f"`{name}`", f"{mib:.1f}"] for name, mib in taken.items() if name != "x" and mib is not None
            ]
    if not rows:
        return ""
    return f"\nPeak memory beside the stack, result included:\n\n{tabulate(['stack', 'rule', 'MiB'], rows)}"


def write_growth() -> str:
    rows = [
        [
            shape.removeprefix("growth "),
            f"{row['x.mean(0)']['ms']:.3f}",
            f"{row['tq']['ms']:.3f}",
            f"{row['tq']['ratio']:.1f}",
        ]
        for shape, row in need("gpu-growth")["times"].items()
    ]
    return tabulate(["shape", "mean, ms", "TQ called, ms", "times mean"], rows)


def write_rounds() -> str:
    gpu, cpu = need("gpu-rounds"), need("cpu-rounds")
    rows = [[name, f"{ms:.2f}", f"{1000 / ms:.0f}"] for name, ms in gpu["ms"].items()]
    bare = cpu["ms"]["bare gradients of 14 clients"]
    other = [[name, f"{ms:.0f}", f"{1000 / ms:.1f}", f"{ms / bare:.2f}"] for name, ms in cpu["ms"].items()]
    head = ["", "ms a round", "rounds a second"]
    return (
        f"On a CPU ({cpu['machine']['processor']}, {cpu['machine']['threads']} threads): the paper's CNN, n=20, f=6, "
        f"b=32, IPM.\n\n{tabulate([*head, 'times bare gradients'], other)}{tell_busy(cpu)}\n"
        f"On one {gpu['device']}, the whole round as a CUDA graph:\n\n{tabulate(head, rows)}"
    )


def write_many() -> str:
    found = need("cpu-many")
    names = {"tq": "TQ", "spectralfilter": "SpectralFilter"}
    rows = []
    for size in found["rules"]["tq"]["ms"]:
        row = [size]
        for rule in names:
            ms = found["rules"][rule]["ms"]
            row += [f"{ms[size]:.2f}", f"{ms['1'] / ms[size]:.2f}"]
        rows.append(row)
    head = ["runs together", *(text for name in names.values() for text in (f"{name}, ms", "times as many"))]
    what = (
        f"`python benchmarks/many.py`: a round of one of {found['runs']} runs of digits (n=20, f=6) on one core, where "
        "the gradients of several runs are one batch. All else is done as for a run alone, with the same draws."
    )
    why = (
        "The clients of one run are a batch already, so a batch of a few runs gains less than two times, one of many "
        "nothing. A sweep therefore puts no runs together on a CPU: `--workers` does one on each core."
    )
    return f"{wrap(what)}\n{tabulate(head, rows)}{tell_busy(found)}\n{wrap(why)}"


def write_gradients() -> str:
    found = need("gpu-gradients")
    wanted = {
        "vmap": "`vmap(grad)`",
        "implicit last float32 norm": "dense batch, float32",
        "implicit last tf32 norm": "dense batch, tf32",
        "implicit last bfloat16 norm": "dense batch, bfloat16",
    }
    rows = [
        [row["model"], str(row["clients"]), wanted[row["variant"]], f"{row['ms']:.2f}", f"{row['error']:.0e}"]
        for model, clients in (("cnn", 14), ("resnet20", 25))
        for variant in wanted
        for row in found["results"]
        if (row["model"], row["clients"], row["variant"]) == (model, clients, variant)
    ]
    return tabulate(["model", "clients", "gradients by", "ms", "largest relative error"], rows)


def write_together() -> str:
    found = need("gpu-together")
    alone = found["runs_a_minute"]["one process"]["1"]
    rows = [
        [how, count, f"{runs:.1f}", f"{runs / alone:.2f}"]
        for how, counts in found["runs_a_minute"].items()
        for count, runs in counts.items()
    ]
    best = found["runs_a_minute"]["processes under MPS"]["4"] / alone
    table = tabulate(["", "processes", "runs a minute", "times one process"], rows)
    text = (
        "One process alone already nearly fills the GPU. Four workers under NVIDIA's MPS "
        f"(`nvidia-cuda-mps-control -d`, then `--workers 4`) give {best:.2f} times the runs; eight give less."
    )
    return f"{table}\n{wrap(text)}"


def write() -> str:
    machine = need("cpu-n20")["machine"]
    return f"""# Performance

Every figure on this page comes from a JSON file in `benchmarks/results` (the accuracies from `results`), and
`python benchmarks/document.py` writes the page from them. Times are medians of runs that take turns on one machine;
what counts is the ratio to `x.mean(0)`, which must read the same numbers.

![Time of each rule as a multiple of the mean, on a CPU and on a GPU](images/performance.png)

## Targets, and what is reached

{write_targets()}
## Aggregation on a CPU

`make bench` on {machine["processor"]}, {machine["cores"]} cores, torch {machine["torch"]}.

{write_cpu("cpu-n20")}
{write_cpu("cpu-n25")}
{write_cpu("cpu-n64")}
ByzFL 0.0.11 and byzpy 0.1.4 get the same stack in the same run, and take turns with our rule. Where ours is
`nnm >> tq`, theirs is NNM alone. byzpy's rules are called directly and by its own pool of threads, one for each core;
the faster counts. byzpy's metadata wants torch below 2.6 and numpy below 2.1, but the rules here run with newer ones.
`benchmarks/agree.py` shows that rules defined alike give equal values. Defined otherwise: byzpy's median of an even
number of values is the lower middle one, and its geometric median starts at the median and not at the origin.

The sketch of TQ is bound by arithmetic, not by memory: it sorts, and it multiplies every pair of rows. Combining is
bound by memory.

### Growth with n and d

![Times of the mean by clients, up to 3,000, and time by values](images/performance-growth.png)

{write_cpu_growth()}
Twenty rows of 100 million values would be 8 GB, so that row has n=5.

### Other dtypes, and verdicts

{write_kinds()}
### State dicts

Clients send state dicts, not rows of a matrix. Large tensors are read where they lie; small ones are first copied side
by side, because a pass over each of them would take longer.

{write_dicts()}
### Peak memory

{write_memory()}
### Flower's strategies

`benchmarks/flower.py`: one aggregation of replies as a server gets them, unpacking included.

{write_flower()}
Bulyan wants n >= 4f + 3, hence the small f; we have none, so TQ stands beside it. Flower's Krum and MultiKrum sum over
n-f-2 other clients, ours over n-f-1.

## Aggregation on a GPU

`python benchmarks/gpu.py` on one NVIDIA H200. Called by itself, a rule on a small stack waits for Python and for
its launches; in a CUDA graph, as a training round uses it, only the kernels count. `robagg.Captured(rule, x)` gives a
loop of one's own such a graph: its calls (captured) launch it, ask whether a row was broken, and copy the result.

{write_gpu()}
Growth with n and d (TQ, called; beyond n=64 the plain torch path runs; measured before what lies between the passes was
fused, so that TQ on few numbers takes less than half of it today):

{write_growth()}
## Training

{write_rounds()}
The gradients of so many clients, on the same GPU, against those in float64 (`python benchmarks/rounds_gpu.py`); the
rounds above need those of the honest alone, 14 and 21:

{write_gradients()}
### Speed and accuracy

Accuracy on MNIST (n=20, f=6, rho=0.5, 1,500 rounds, mean of three seeds) when the trainer was new, and with the kernels
that were made faster since; and again with initial weights that differ by a part in a million
(`python studies/tq-paper/noise.py`).

{write_again()}
### Precision and accuracy

The same cells of TQ. tf32 is the default on a GPU; `precision="bfloat16"` is faster.

{write_precision()}
### Many small runs on a CPU

{write_many()}
### Several runs at once on one GPU

{need("gpu-together")["task"]}, on one {need("gpu-together")["device"]}.

{write_together()}"""


def main() -> None:
    pictures.draw_costs(need("cpu-n20"), need("gpu-times")["times"]["n=20 d=1.2M float32"])
    pictures.draw_growth(need("cpu-growth"))
    SCALE.write_text(replace_many(SCALE.read_text()))
    PAGE.write_text(write())
    print(f"written: {', '.join(str(path.relative_to(ROOT)) for path in (PAGE, pictures.COSTS, pictures.GROWTH))}")


if __name__ == "__main__":
    main()
