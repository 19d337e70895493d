"""Other libraries to measure against, installed beside this script so that they touch nobody's environment."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

FOLDER = Path(__file__).parent / ".peers"
PACKAGES = {"byzfl": "byzfl==0.0.11", "byzpy": "byzpy==0.1.4"}
BYZFL = {
    "cm": "Median()",
    "tm": "TrMean(f={f})",
    "krum": "Krum(f={f})",
    "multikrum": "MultiKrum(f={f})",
    "rfa": "GeometricMedian(T=10)",
    "cc(iterations=10)": "CenteredClipping(L=10, tau=10.0)",
    "nnm >> tq": "NNM(f={f})",
}
BYZPY = {
    "cm": "CoordinateWiseMedian()",
    "tm": "CoordinateWiseTrimmedMean(f={f})",
    "krum": "Krum(f={f})",
    "multikrum": "MultiKrum(f={f}, q={h})",
    "rfa": "GeometricMedian(max_iter=10, tol=1e-30)",
    "cc(iterations=10)": "CenteredClipping(c_tau=10.0, M=10, init='zero')",
    "nnm >> tq": "NearestNeighborMixing(f={f})",
}
"""Our rule -> theirs. Where ours is a chain, theirs is its first part alone."""
MODULES = {
    "aggregators.coordinate_wise.median": ("CoordinateWiseMedian",),
    "aggregators.coordinate_wise.trimmed_mean": ("CoordinateWiseTrimmedMean",),
    "aggregators.geometric_wise.geometric_median": ("GeometricMedian",),
    "aggregators.geometric_wise.krum": ("Krum", "MultiKrum"),
    "aggregators.norm_wise.center_clipping": ("CenteredClipping",),
    "pre_aggregators.clipping": ("Clipping",),
    "pre_aggregators.nnm": ("NearestNeighborMixing",),
    "engine.graph.executor": ("OperatorExecutor",),
    "engine.graph.pool": ("ActorPoolConfig",),
}


@dataclass(frozen=True)
class Peer:
    """One rule of another library."""

    library: str
    call: str
    run: Callable[[Tensor], Any]
    way: str = ""


def install() -> bool:
    """Install the peers without their dependencies; False where they cannot be had."""
    missing = [spec for name, spec in PACKAGES.items() if not (FOLDER / name).is_dir()]
    if missing:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--retries", "1", "--upgrade"]
        if subprocess.run([*command, "--target", str(FOLDER), *missing], check=False).returncode != 0:
            print("the peers could not be installed (no network?): their columns stay empty", file=sys.stderr)
            return False
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return True


def load_byzfl() -> Any | None:
    """ByzFL, or None. Only its own benchmark wants torchvision, so a stand-in takes that module's place."""
    if not install():
        return None
    sys.modules.setdefault("byzfl.benchmark", types.ModuleType("byzfl.benchmark"))
    return load("byzfl", lambda: importlib.import_module("byzfl"))


def load_byzpy() -> Any | None:
    """The classes of byzpy that are measured, under one name, or None. It is taken as it is: its metadata wants
    torch below 2.6 and numpy below 2.1, but nothing that runs here depends on that."""
    if not install():
        return None

    def collect() -> Any:
        found = {name: importlib.import_module(f"byzpy.{name}") for name in MODULES}
        classes = {part: getattr(found[name], part) for name, parts in MODULES.items() for part in parts}
        return types.SimpleNamespace(**classes)

    return load("byzpy", collect)


def load(name: str, collect: Callable[[], Any]) -> Any | None:
    try:
        return collect()
    except Exception as error:
        print(f"{name} cannot be used here ({type(error).__name__}: {error}): its columns stay empty", file=sys.stderr)
        return None


def take_byzfl(byzfl: Any, rule: str, n: int, f: int) -> Peer:
    call = BYZFL[rule].format(f=f, h=n - f)
    return Peer("ByzFL", call, eval(f"byzfl.{call}", {"byzfl": byzfl}))


def take_byzpy(byzpy: Any, rule: str, n: int, f: int) -> Peer:
    call = BYZPY[rule].format(f=f, h=n - f)
    made = eval(f"byzpy.{call}", {"byzpy": byzpy})
    plain = getattr(made, "aggregate", None) or made.pre_aggregate
    return Peer("byzpy", call, lambda x: plain(list(x)), "called")


def take_byzpy_pooled(byzpy: Any, rule: str, n: int, f: int) -> Peer:
    """The same by byzpy's own engine, which cuts it in parts for a pool of one thread per core."""
    call = BYZPY[rule].format(f=f, h=n - f)
    made = eval(f"byzpy.{call}", {"byzpy": byzpy})
    pool = byzpy.ActorPoolConfig(backend="thread", count=os.cpu_count() or 1)
    executor, loop = byzpy.OperatorExecutor(made, pool_config=pool), asyncio.new_event_loop()
    return Peer(
        "byzpy", call, lambda x: loop.run_until_complete(executor.run({made.input_key: list(x)})), "pool of threads"
    )


def take_faster(peers: list[Peer], x: Tensor, *, warm: bool = True) -> tuple[Peer, float]:
    """The faster one by one call of each, after another to warm up, and that call's seconds."""

    def took(peer: Peer) -> float:
        if warm:
            peer.run(x)
        begin = time.perf_counter()
        peer.run(x)
        return time.perf_counter() - begin

    times = [took(peer) for peer in peers]
    return peers[times.index(min(times))], min(times)


def list_peers(n: int, f: int) -> dict[str, dict[str, list[Peer]]]:
    """Our rule -> library -> its ways to do that. Libraries that cannot be had are left out."""
    found: dict[str, dict[str, list[Peer]]] = {}
    if (byzfl := load_byzfl()) is not None:
        for rule in BYZFL:
            found.setdefault(rule, {})["ByzFL"] = [take_byzfl(byzfl, rule, n, f)]
    if (byzpy := load_byzpy()) is not None:
        for rule in BYZPY:
            ways = [take_byzpy(byzpy, rule, n, f), take_byzpy_pooled(byzpy, rule, n, f)]
            found.setdefault(rule, {})["byzpy"] = ways
    return found
