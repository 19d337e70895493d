"""`robagg doctor`: what is installed, what runs and why not more, and a short test of it."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import torch
import typer

from robagg import __version__
from robagg._core.rule import parse
from robagg.cli.threads import Threads, set_threads
from robagg.cli.waiting import wait
from robagg.data import NAMES
from robagg.data.files import is_there, locate_root
from robagg.data.sources import SOURCES
from robagg.kernels import active, cpu_library, cuda, reference
from robagg.lab.plugins import list_plugins, load_entry_points
from robagg.training import train

PACKAGES = (
    *("torch", "numpy", "typer", "rich", "matplotlib", "scikit-learn", "pooch"),
    *("triton", "flwr", "nvflare", "ray", "safetensors", "sentence-transformers", "tensorboard", "prometheus-client"),
)
RULES = ("tq", "nnm >> tq", "spectralfilter", "cm", "krum")
"""Those that are compared on the kernels and on the reference."""


def doctor(
    data: Annotated[Path | None, typer.Option(help="folder of the data; default $ROBAGG_DATA, or a cache")] = None,
    threads: Threads = None,
) -> None:
    """Say what is installed, which kernels run and why not others, where the data are, and test all of it briefly.

    The exit code is 1 where the test fails.

    Example:

        robagg doctor
    """
    load_entry_points()
    set_threads(threads)
    say = typer.echo
    say(f"robagg {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    say("packages: " + ", ".join(f"{name} {find_version(name)}" for name in PACKAGES))
    say(f"CPU kernels: {describe_cpu()}")
    say(f"GPU: {describe_gpu()}")
    say(f"threads: torch uses {torch.get_num_threads()} of {os.cpu_count()} cores")
    root = locate_root(data)
    say(f"data in {root}: " + ", ".join(f"{name} {find_data(name, root)}" for name in NAMES))
    plugins = [f"{plugin.source}" for plugin in list_plugins()]
    say(f"plugins of installed packages: {', '.join(plugins) or 'none'}")
    begin = time.perf_counter()
    with wait("testing"):
        faults = check_rules(torch.device("cpu"))
        if torch.cuda.is_available():
            faults += check_rules(torch.device("cuda"))
        faults += check_training()
    for fault in faults:
        say(f"fault: {fault}", err=True)
    seconds = time.perf_counter() - begin
    say(f"self-test: {'failed' if faults else 'passed'} in {seconds:.1f} s")
    if faults:
        raise typer.Exit(1)


def find_version(package: str) -> str:
    """The installed version, or that there is none.

    >>> find_version("no-such-package")
    'missing'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def describe_cpu() -> str:
    """Which path runs on a CPU, and why not a faster one."""
    if os.environ.get("ROBAGG_KERNEL"):
        return f"{active('cpu')}, as ROBAGG_KERNEL asks"
    if reason := cpu_library.explain():
        return f"torch, since the compiled library cannot run: {reason}"
    there = cpu_library.isas()
    lacking = [isa for isa in cpu_library.ISAS if isa not in there]
    why = f"; this CPU has no {', '.join(lacking)}" if lacking else ""
    return f"{active('cpu')}, of {', '.join(there)}{why}"


def describe_gpu() -> str:
    """Which path runs on a GPU, and why not a faster one."""
    if not torch.cuda.is_available():
        return f"none that torch {torch.__version__} can use"
    name = torch.cuda.get_device_name()
    return f"{name}: {active('cuda')}" + (f", since {reason}" if (reason := cuda.explain()) else "")


def find_data(name: str, root: Path) -> str:
    """Whether a data set is there."""
    if name == "digits":
        return "comes with scikit-learn" if find_version("scikit-learn") != "missing" else "needs scikit-learn"
    whole = all(is_there(SOURCES[name], file, root) for file in SOURCES[name].files)
    return "is there" if whole else f"is missing (robagg data get {name})"


def check_rules(device: torch.device) -> list[str]:
    """Rules on the kernels of a device against the reference in plain torch, and against a far Byzantine row."""
    faults = []
    x = torch.randn(12, 20_000, generator=torch.Generator().manual_seed(0)).to(device)
    x[10], x[11] = 1e30, torch.nan
    honest = x[:10].mean(0)
    spread = (x[:10] - honest).square().sum(1).mean().sqrt()
    for text in RULES:
        value = parse(text, f=3)(x)
        away = float((value - honest).norm() / spread)
        if not away < 1:
            faults.append(f"{text} on {device} ends {away:.2g} honest spreads from the honest mean")
    rows = tuple(x[:10])
    median = reference.sketch(rows, compute=torch.float32).median
    got = parse("cm", f=3)(x[:10])
    if not torch.allclose(got, median, atol=1e-5):
        faults.append(f"cm on {device} is not the reference's median")
    return faults


def check_training() -> list[str]:
    """A training of a second, with two Byzantine clients of ten."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1000, 10, generator=generator)
    y = (x[:, 0] > 0).long()
    clients = [(x[i::10], y[i::10]) for i in range(10)]
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        result = train(
            torch.nn.Linear(10, 2), clients, "tq", "bf", f=2, test=(x, y), rounds=100, rate=0.5, momentum=0.5
        )
    fine = result.accuracy is not None and result.accuracy > 80
    return [] if fine else [f"a short training ends at {result.accuracy} % accuracy"]
