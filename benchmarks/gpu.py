"""Checks and times aggregation on a CUDA device: `python benchmarks/gpu.py --json gpu.json`.

Needs torch, numpy, triton and the package (installed, or PYTHONPATH=src). Every case stands alone: one that fails
prints its traceback and the next runs. Times are medians by CUDA events around one eager call on an idle device,
launches included; "captured" is a call of a `robagg.Captured`, "graph" the replay of a graph alone. Ratios are
to `x.mean(0)` on the same stack. ByzFL and byzpy are measured where `benchmarks/.peers` holds them or the network has
them. `--tune` tries other plans.

    python benchmarks/gpu.py --only times --json benchmarks/results/gpu-times.json
    python benchmarks/gpu.py --only growth --json benchmarks/results/gpu-growth.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import peers
import robagg
from robagg import kernels
from robagg._core.aggregate import Request, aggregate
from robagg._core.cuda_graph import apart
from robagg._core.sketch import Sketch
from robagg._core.stack import read
from robagg._core.verdict import rebuild
from robagg.kernels import cuda, reference

F32, F64 = torch.float32, torch.float64
STACKS = {"n=20 d=1.2M": (20, 1_199_882), "n=25 d=11M": (25, 11_000_000)}
RULES = (
    "mean",
    "cm",
    "tm",
    "tq",
    "huber",
    "cc",
    "rfa",
    "mca",
    "krum",
    "multikrum",
    "nnm >> tq",
    "nnm >> cm",
    "nnm >> krum",
)
RESULTS: dict[str, Any] = {"checks": {}, "times": {}, "memory": {}, "failed": []}


@contextmanager
def case(name: str) -> Any:
    """One case: whatever goes wrong in it is told, and the next one runs."""
    began = time.perf_counter()
    try:
        yield
    except Exception:
        RESULTS["failed"].append(name)
        print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
    if (took := time.perf_counter() - began) > 5:
        print(f"       ({name} took {took:.0f} s, compilation included)", flush=True)


def measure(call: Callable[[Tensor], Any], stacks: list[Tensor], seconds: float = 0.15) -> float:
    """Median milliseconds of one call; the stacks take turns, so that the cache holds none of them."""
    for x in stacks:
        call(x)
    times: list[float] = []
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    until = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < until and len(times) < 200):
        torch.cuda.synchronize()
        start.record()
        call(stacks[len(times) % len(stacks)])
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def capture(call: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    device = torch.device("cuda", torch.cuda.current_device())
    with apart(device):
        call()
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def record(table: str, row: str, ms: float, mean: float, target: str = "") -> None:
    RESULTS["times"].setdefault(table, {})[row] = {"ms": ms, "ratio": ms / mean, "target": target}
    print(f"  {row:28} {ms:9.4f} ms {ms / mean:8.2f}x {target}", flush=True)


def stack(kind: str, n: int, d: int) -> Tensor:
    x = torch.randn(n, d, device="cuda")
    if kind == "tied":
        return x.mul(2).round()
    if kind == "huge":
        x[: n // 3] *= 1e15
    if kind == "denormal":
        return x * 1e-40
    return x.to({"float16": torch.float16, "bfloat16": torch.bfloat16}.get(kind, F32))


def off(got: Tensor, wanted: Tensor) -> float:
    """The largest difference beside the largest value."""
    if got.shape != wanted.shape or not torch.isfinite(got).all():
        return float("inf")
    got, wanted = got.double().cpu(), wanted.double().cpu()
    return float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1e-300))


def check(name: str, errors: dict[str, float], limit: float = 1e-5) -> None:
    good = all(error <= limit for error in errors.values())
    RESULTS["checks"][name] = {**errors, "good": good}
    print(f"  {'ok  ' if good else 'BAD '} {name:44}", "  ".join(f"{k} {v:.1e}" for k, v in errors.items()), flush=True)


def check_passes(
    kind: str, n: int, d: int, *, mixed: bool = False, anchored: bool = False, loose: bool = False
) -> None:
    x = stack(kind, n, d)
    mix = torch.rand(n, n, dtype=F64, device="cuda") if mixed else None
    mix = None if mix is None else mix / mix.sum(dim=1, keepdim=True)
    anchors = (None, torch.randn(d, device="cuda")) if anchored else ()
    # Pieces of unlike size, so that no one stride leads from each to the next.
    rows = [torch.cat([row, row.new_zeros(512 * i * i)])[:d] for i, row in enumerate(x)] if loose else x
    median, spread, gram, square = cuda.sketch(rows, mix=mix, anchors=anchors, compute=F32)
    wide = reference.sketch(x.double(), mix=mix, anchors=anchors, compute=F64)
    lengths = wide[2].diagonal().sqrt().clamp(min=1e-37)
    errors = {"median": off(median, wide[0]), "spread": off(spread, wide[1])}
    if square is not None and wide[3] is not None:
        errors["square"] = off(square, wide[3])
    errors["gram"] = off(gram / lengths / lengths[:, None], wide[2] / lengths / lengths[:, None])
    lo, hi = n // 4, n - n // 4
    value, alarm = cuda.trim(rows, lo, hi, mix=mix, compute=F32)
    errors["trim"] = off(value, reference.trim(x.double(), lo, hi, mix=mix, compute=F64)[0]) + float(alarm)
    c = torch.randn(n, dtype=F64, device="cuda")
    c[0] = 0
    value, alarm = cuda.combine(rows, c, beside=[median], compute=F32)
    wanted = reference.combine(x.double(), c, beside=[median.double()], compute=F64)[0]
    errors["combine"] = off(value, wanted) + float(alarm)
    extras = "".join(word for word, on in ((" mix", mixed), (" anchors", anchored), (" loose", loose)) if on)
    # Denormal squares vanish in float32: the rule is alarmed and computes in float64.
    if kind == "denormal":
        errors = {k: v for k, v in errors.items() if k in ("median", "trim", "combine")}
    check(f"{kind} n={n} d={d}{extras}", errors, 1e-3 if kind == "denormal" else 1e-5)


def check_alarms() -> None:
    for value in (torch.nan, torch.inf):
        x = torch.randn(9, 1001, device="cuda")
        x[4, 777] = value
        finite = torch.isfinite(cuda.sketch(x, compute=F32)[2].diagonal()).tolist()
        trimmed = bool(cuda.trim(x, 4, 5, compute=F32)[1])
        c = torch.ones(9, dtype=F64, device="cuda")
        met = bool(cuda.combine(x, c, compute=F32)[1])
        c[4] = 0
        skipped = not bool(cuda.combine(x, c, compute=F32)[1])
        print(f"       {value}: finite diagonals {finite}")
        check(f"alarm {value}", {"wrong": float(finite[4] or not (trimmed and met and skipped))})


def check_walks(n: int) -> None:
    x = torch.randn(n + 1, 500, dtype=F64, device="cuda")
    x[: n // 4] *= 5
    gram = x @ x.T
    for f in {0, (n - 1) // 2}:
        sketch = Sketch(gram, gram.new_full((), 200.0), n, f, ("origin",), 2.0**-20)
        for rule in (robagg.TQ(), robagg.Huber(), robagg.RFA(), robagg.MCA()):
            there = replace(sketch, gram=gram.cpu(), spread=sketch.spread.cpu())  # step by step on the host
            wanted, got = rule.weights(there), rule.weights(sketch)
            errors = {"coefficients": off(got.coefficients, wanted.coefficients), "reach": off(got.reach, wanted.reach)}
            if wanted.outside is not None:
                errors["outside"] = float((got.outside.cpu() != wanted.outside).sum())
            check(f"walk {rule} n={n} f={f}", errors, 1e-9)
        near = [*cuda.neighbours(gram, n, n - f), sketch.nearest_means()]
        wanted = [*there.neighbours(), there.nearest_means()]
        check(f"neighbours n={n} f={f}", {"off": max(off(a, b) for a, b in zip(near, wanted, strict=True))}, 1e-12)


def check_capture(text: str, n: int, d: int) -> None:
    """A captured rule on other rows than it was captured with: sound ones, then with a broken and with huge ones."""
    x, rule = stack("random", n, d), robagg.parse(text, f=n // 4)
    aggregate = robagg.Captured(rule, x)
    x.copy_(stack("random", n, d))
    first, wanted = aggregate(), rule(x)
    errors = {"off": off(first, wanted)}
    x[0, 7] = torch.nan
    errors["broken"] = off(aggregate(), rule(x))
    x[0] = 1e38
    errors["huge"] = off(aggregate(), rule(x))
    errors["first"] = off(first, wanted)  # the later calls have not written into its value
    check(f"capture {text}", errors, 0.0)


def check_captured_draws() -> None:
    """What is random is drawn anew by every call, and as an uncaptured call draws it."""
    x, rule = stack("random", 20, 1001), robagg.parse("bucketing >> cm", f=5)
    draws = [torch.Generator("cuda").manual_seed(1) for _ in range(2)]
    aggregate = robagg.Captured(rule, x, generator=draws[0])
    values, wanted = [], []
    for broken in (False, False, True, False):  # a broken row is found after the draw, which must not be lost
        x[0] = torch.nan if broken else 1.0
        values.append(aggregate())
        wanted.append(rule(x, generator=draws[1]))
    same = float(torch.equal(values[0], values[1]))
    check("captured draws", {"off": max(map(off, values, wanted)), "same": same}, 0.0)


def check_captured_elsewhere() -> None:
    """On another device than the current one."""
    if torch.cuda.device_count() < 2:
        print("       captured on another device: not checked, there is one only")
        return
    x, rule = stack("random", 20, 1001).to("cuda:1"), robagg.parse("tq", f=5)
    aggregate = robagg.Captured(rule, x)
    x.copy_(stack("random", 20, 1001))
    check("captured on another device", {"off": off(aggregate(), rule(x))}, 0.0)


def check_all() -> None:
    print("checks against the reference in float64 (errors beside the largest value)")
    for n in (1, 2, 3, 5, 8, 16, 20, 25, 32, 33, 48, 64, 65, 130):
        with case(f"passes n={n}"):
            check_passes("random", n, 10_007)
    for kind in ("tied", "huge", "denormal", "float16", "bfloat16"):
        with case(f"passes {kind}"):
            check_passes(kind, 20, 100_003)
    for extra in ("mixed", "anchored", "loose"):
        for n in (5, 20):
            with case(f"passes {extra} n={n}"):
                check_passes("random", n, 10_007, **{extra: True})
    with case("passes mixed n=40"):
        check_passes("random", 40, 3_001, mixed=True)
    with case("passes d=1.2M"):
        check_passes("random", 20, 1_199_882)
    with case("alarms"):
        check_alarms()
    for n in (2, 20, 50):
        with case(f"walks n={n}"):
            check_walks(n)
    for text in ("tq", "krum", "cm", "nnm >> tq", "rfa", "mca"):
        with case(f"capture {text}"):
            check_capture(text, 20, 100_003)
    with case("captured draws"):
        check_captured_draws()
    with case("captured on another device"):
        check_captured_elsewhere()


def time_kernels(table: str, n: int, d: int, stacks: list[Tensor], mean: float) -> None:
    c = torch.rand(n, dtype=F64, device="cuda")
    mix = torch.full((n, n), 1 / n, dtype=F64, device="cuda")
    median, spread, gram, _ = cuda.sketch(stacks[0], compute=F32)
    calls: dict[str, Callable[[Tensor], Any]] = {
        "kernel sketch": lambda x: cuda.sketch(x, compute=F32),
        "kernel sketch of mixed rows": lambda x: cuda.sketch(x, mix=mix, compute=F32),
        "kernel trim": lambda x: cuda.trim(x, n // 4, n - n // 4, compute=F32),
        "kernel combine": lambda x: cuda.combine(x, c, beside=[median], compute=F32),
        "kernel walk tq": lambda x: cuda.walk("tq", gram, spread, n, n // 4, 10, None, 2.0**-20, None, None),
        "kernel neighbours": lambda x: cuda.neighbours(gram, n, n - n // 4),
    }
    for name, call in calls.items():
        with case(f"{table}: {name}"):
            record(table, name, measure(call, stacks), mean)
            graph, _ = capture(lambda call=call: call(stacks[0]))
            record(table, f"{name} (graph)", measure(lambda x, graph=graph: graph.replay(), stacks[:1]), mean)


def time_rules(table: str, n: int, stacks: list[Tensor], mean: float, rules: Iterable[str] = RULES) -> None:
    flag = torch.zeros((), dtype=torch.bool, device="cuda")

    def keep(text: str, end: str, ms: float) -> None:
        target = "target <= 4x" if text == "tq" else ""
        if text == "nnm >> tq" and (tq := RESULTS["times"][table].get(f"tq{end}")):
            target = f"= {ms / tq['ms']:.2f}x tq, target <= 2.2x"
        record(table, text + end, ms, mean, target)

    for text in rules:
        with case(f"{table}: {text}"):
            rule = robagg.parse(text, f=n // 4)
            keep(text, "", measure(rule, stacks))
            captured = {id(x): robagg.Captured(rule, x) for x in stacks}
            keep(text, " (captured)", measure(lambda x, captured=captured: captured[id(x)](), stacks))
            captured.clear()
            graph, _ = capture(lambda rule=rule: rebuild(*aggregate(rule, read(stacks[0]), Request(alarm=flag))))
            keep(text, " (graph)", measure(lambda x, graph=graph: graph.replay(), stacks[:1]))


def time_peers(table: str, n: int, stacks: list[Tensor], mean: float) -> None:
    """ByzFL's and byzpy's rules as they are called, and the peak memory of one call."""
    f = n // 4
    for library, load, calls, take in (
        ("ByzFL", peers.load_byzfl, peers.BYZFL, peers.take_byzfl),
        ("byzpy", peers.load_byzpy, peers.BYZPY, peers.take_byzpy),
    ):
        loaded = load()
        for text in calls if loaded is not None else ():
            with case(f"{table}: {library} {text}"):
                peer = take(loaded, text, n, f)
                record(table, f"{library} {peer.call}", measure(peer.run, stacks), mean)
                keep_memory(table, f"{library} {peer.call}", peer.run, stacks[0])
            torch.cuda.empty_cache()


def keep_memory(table: str, name: str, call: Callable[[Tensor], Any], x: Tensor) -> None:
    """MiB that one call takes beside x, its result included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call(x)
    torch.cuda.synchronize()
    extra = (torch.cuda.max_memory_allocated() - before) / 2**20
    RESULTS["memory"].setdefault(table, {"x": x.nbytes / 2**20})[name] = extra
    print(f"  {name:28} {extra:9.1f} MiB beside the stack of {x.nbytes / 2**20:.1f} MiB", flush=True)


def time_stack(name: str, n: int, d: int, dtype: torch.dtype) -> None:
    table = f"{name} {str(dtype).removeprefix('torch.')}"
    stacks = [torch.randn(n, d, device="cuda").to(dtype) for _ in range(3)]
    print(table)
    mean = measure(lambda x: x.mean(0), stacks)
    record(table, "x.mean(0)", mean, mean)
    copy = torch.empty_like(stacks[0])
    record(table, "copy of x", measure(copy.copy_, stacks), mean)
    del copy
    if dtype == F32:
        with case(f"{table}: kernels"):
            time_kernels(table, n, d, stacks, mean)
    time_rules(table, n, stacks, mean, RULES if dtype == F32 else ("cm", "tq", "krum"))
    for text in RULES if dtype == F32 else ("tq",):
        with case(f"{table}: memory of {text}"):
            keep_memory(table, text, robagg.parse(text, f=n // 4), stacks[0])
    if dtype == F32:
        time_peers(table, n, stacks, mean)


def grow() -> None:
    sizes = [(n, 1_000_000) for n in (5, 10, 20, 32, 64, 100, 200)] + [(20, 10**k) for k in (4, 5, 6, 7, 8)]
    for n, d in sizes:
        table = f"growth n={n} d={d}"
        with case(table):
            print(table)
            stacks = [torch.randn(n, d, device="cuda") for _ in range(2 if n * d > 1e8 else 3)]
            mean = measure(lambda x: x.mean(0), stacks)
            record(table, "x.mean(0)", mean, mean)
            record(table, "tq", measure(robagg.parse("tq", f=n // 4), stacks), mean)
        torch.cuda.empty_cache()


def tune() -> None:
    """Other plans for the passes: what they cost at n = 20, 25 and 50. The fastest of each pass stay chosen."""
    tried = [(128, None), (128, 96), (128, 128), (128, 168), (256, None), (256, 168), (512, None)]
    for n, d in (*STACKS.values(), (50, 1_000_000)):
        stacks = [torch.randn(n, d, device="cuda") for _ in range(3)]
        mix, c = torch.full((n, n), 1 / n, dtype=F64, device="cuda"), torch.rand(n, dtype=F64, device="cuda")
        lo, hi, wide = n // 4, n - n // 4, " wide" if n > 32 else ""
        calls: dict[str, Callable[[Tensor], Any]] = {
            f"sketch{wide}": lambda x: cuda.sketch(x, compute=F32),
            f"mixed sketch{wide}": lambda x, mix=mix: cuda.sketch(x, mix=mix, compute=F32),
            f"trim{wide}": lambda x, lo=lo, hi=hi: cuda.trim(x, lo, hi, compute=F32),
            f"mixed trim{wide}": lambda x, lo=lo, hi=hi, mix=mix: cuda.trim(x, lo, hi, mix=mix, compute=F32),
            "combine": lambda x, c=c: cuda.combine(x, c, compute=F32),
        }
        for name, call in calls.items():
            kept, times = cuda.plans[name], {}
            for block, registers in tried:
                for programs in (1,) if name == "combine" else (2, 3, 4, 6, 8, 12):
                    cuda.plans[name] = replace(kept, block=block, registers=registers, programs=programs)
                    with case(f"n={n} {name} {cuda.plans[name]}"):
                        times[cuda.plans[name]] = measure(call, stacks, 0.03)
                        print(f"  n={n} {name:17} {cuda.plans[name]}: {times[cuda.plans[name]]:.4f} ms", flush=True)
            cuda.plans[name] = min(times, key=times.__getitem__, default=kept)
            print(f"n={n} {name}: {cuda.plans[name]}, {times.get(cuda.plans[name], torch.nan):.4f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--tune", action="store_true", help="try other plans instead")
    parser.add_argument("--only", choices=("checks", "times", "growth"), help="this part alone")
    options = parser.parse_args()
    if not torch.cuda.is_available() or not cuda.available():
        print("no CUDA device, or no Triton: nothing to measure here")
        return
    import triton

    name = torch.cuda.get_device_name()
    RESULTS["machine"] = {"device": name, "torch": torch.__version__, "triton": triton.__version__}
    print(f"{name}, torch {torch.__version__}, triton {triton.__version__}; CUDA path: {kernels.active('cuda')}")
    torch.manual_seed(0)
    if options.tune:
        return tune()
    if options.only in (None, "checks"):
        check_all()
    if options.only in (None, "times"):
        for stack_name, (n, d) in STACKS.items():
            for dtype in (F32, torch.bfloat16):
                with case(f"{stack_name} {dtype}"):
                    time_stack(stack_name, n, d, dtype)
                torch.cuda.empty_cache()
    if options.only in (None, "growth"):
        grow()
    bad = [key for key, row in RESULTS["checks"].items() if not row["good"]]
    print(f"failed cases: {RESULTS['failed'] or 'none'}; checks that are off: {bad or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1) + "\n")


if __name__ == "__main__":
    main()
