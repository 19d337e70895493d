"""Gradients of all clients on a GPU: `vmap` beside the dense batch in its variants, each captured in a CUDA graph.

    python benchmarks/rounds_gpu.py --json rounds_gpu.json

Without a GPU it says so and ends well. Times are medians over replays by CUDA events; errors are against float64
gradients of the same batch on the CPU, with dropout off.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.build import build
from robagg.models.flat import Flat
from robagg.training.gradients.dense.engine import Dense
from robagg.training.gradients.looped import Looped, Mapped, Work

WORK = Work(functional.cross_entropy)
SHAPES = {"cnn": (1, 28, 28), "resnet20": (3, 32, 32)}
CASES = [("cnn", 14), ("cnn", 16), ("cnn", 20), ("resnet20", 25)]
Variant = tuple[bool, bool, str | None]
VARIANTS: list[Variant] = [
    (True, True, "tf32"),
    (True, True, None),
    (True, True, "float32"),
    (True, True, "bfloat16"),
    (False, True, "tf32"),
    (False, False, "tf32"),
]
"""Whether layers run on Triton kernels, channels-last, precision; only the first three for the cases in between."""
TARGETS = {("cnn", 14): 1.5, ("resnet20", 25): 8.0}
"""What a whole round with TQ may take, of which the gradients by the first variant are a part."""


def replayed(call: Callable[[], object], replays: int = 60) -> float:
    """Median milliseconds of one replay of the captured call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(5):
        graph.replay()
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(replays)]
    for begin, end in marks:
        begin.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    del graph
    return statistics.median(begin.elapsed_time(end) for begin, end in marks)


def batches(name: str, clients: int) -> tuple[Tensor, Tensor]:
    """Random batches; the first clients have the same whatever the number of clients."""
    x, y = torch.empty(clients, 32, *SHAPES[name]), torch.empty(clients, 32, dtype=torch.int64)
    for i in range(clients):
        generator = torch.Generator().manual_seed(i)
        x[i].normal_(generator=generator)
        y[i].random_(10, generator=generator)
    return x, y


def prepare(name: str, dropout: bool) -> nn.Module:
    model = batchnorm.convert(build(name, seed=0)).train()
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d) and not dropout:
            module.p = 0.0
    return model


def exact(name: str, x: Tensor, y: Tensor) -> Tensor:
    """Gradients (clients, d) in float64 on the CPU."""
    model = prepare(name, dropout=False).double()
    flat = Flat(model)
    rows = torch.empty(len(x), flat.d, dtype=torch.float64)

    def use(i: int, parts: list[Tensor]) -> None:
        flat.join(parts, out=rows[i])

    Looped(model, flat, flat.flatten(), WORK).run(x.double(), y, use)
    return rows


def engine(name: str, variant: Variant | None, example: tuple[Tensor, Tensor], dropout: bool) -> Dense | Mapped:
    model = copy.deepcopy(prepare(name, dropout)).cuda()
    flat = Flat(model)
    if variant is None:
        return Mapped(model, flat, flat.flatten(), WORK)
    fused, last, precision = variant
    dense = Dense(model, flat, flat.flatten(), WORK, example=example, precision=precision)
    dense.channels_last = last
    dense.fused &= fused
    return dense


def parts(dense: Dense, x: Tensor, y: Tensor) -> dict[str, float]:
    """Milliseconds forward; forward and back to the inputs; and of weight gradients, as what is left."""
    through = dense.begin(len(x))

    def ahead() -> None:
        with dense.precise(), torch.no_grad():
            dense.forward(through, x, y)

    def inputs() -> None:
        bare = dense.begin(len(x))
        bare.sinks = {}  # nobody takes weight gradients, so none is made
        with dense.precise():
            dense.backward(bare, dense.forward(bare, x, y))

    forward, back, full = replayed(ahead), replayed(inputs), replayed(lambda: dense.run(x, y))
    return {"forward": forward, "inputs": back - forward, "weights": full - back, "all": full}


def measure(name: str, clients: int, variant: Variant | None, wanted: Tensor) -> dict[str, Any]:
    (x, y), few = (part.cuda() for part in batches(name, clients)), len(wanted)
    calm = engine(name, variant, (x, y), dropout=False)
    rows = calm.run(x[:few], y[:few])[0].double().cpu()
    error = float(((rows - wanted).norm(dim=1) / wanted.norm(dim=1)).max())
    live = engine(name, variant, (x, y), dropout=True)
    result: dict[str, Any] = {"model": name, "clients": clients, "variant": label(variant), "error": error}
    if isinstance(live, Dense):
        result |= {"note": live.note, "parts": parts(live, x, y)} if live.mapped is None else {"note": live.note}
    result["ms"] = replayed(lambda: live.run(x, y))
    return result


def label(variant: Variant | None) -> str:
    if variant is None:
        return "vmap"
    fused, last, precision = variant
    return f"{'triton' if fused else 'torch'} {'last' if last else 'first'} {precision or 'as set'}"


def show(result: dict[str, Any]) -> None:
    split = result.get("parts", {})
    cells = "  ".join(f"{key} {split[key]:6.3f}" for key in ("forward", "inputs", "weights") if key in split)
    row = f"{result['model']:9} n={result['clients']:<3} {result['variant']:33} {result['ms']:8.3f} ms"
    target = TARGETS.get((result["model"], result["clients"])) if result["variant"] == label(VARIANTS[0]) else None
    wanted = f"target for the whole round with TQ: at most {target} ms" if target else ""
    print(f"{row}  error {result['error']:.1e}  {cells}  {result.get('note') or ''}{wanted}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--seconds", type=float, default=85, help="no new case is begun after that")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("There is no GPU here, so there is nothing to measure.")
        return
    begin, results, failures = time.perf_counter(), [], []
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    wanted = {name: exact(name, *batches(name, 2)) for name in SHAPES}
    todo: list[tuple[str, int, Variant | None]] = []
    for name, clients in CASES:
        full = (name, clients) in (("cnn", 14), ("resnet20", 25))
        todo += [(name, clients, variant) for variant in (None, *(VARIANTS if full else VARIANTS[:3]))]
    # What is looked for first comes first, should the time run out.
    todo.sort(key=lambda case: (case[1] in (16, 20), case[2] is None or VARIANTS.index(case[2])))
    for name, clients, variant in todo:
        if time.perf_counter() - begin > arguments.seconds:
            print(f"left out for want of time: {name} n={clients} {label(variant)}")
            continue
        try:
            results.append(measure(name, clients, variant, wanted[name]))
            show(results[-1])
        except Exception:
            failures.append(
                {"model": name, "clients": clients, "variant": label(variant), "error": traceback.format_exc()}
            )
            print(f"{name} n={clients} {label(variant)} failed:")
            traceback.print_exc()
        torch.cuda.empty_cache()
    print(f"{time.perf_counter() - begin:.0f} s")
    if arguments.json:
        device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "batch": 32}
        arguments.json.write_text(json.dumps({**device, "results": results, "failures": failures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
