"""Fair timing on a noisy machine: the things compared take turns, and each one's middle time counts."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

BUSY = 0.15


def take_turns(subjects: dict[str, Callable[[], Any]], *, seconds: float = 6.0, least: int = 5) -> dict[str, float]:
    """Median seconds of each subject, run in turn after one warm-up round.

    A subject slower than its share of the time is run `least` times all the same.
    """
    for run in subjects.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in subjects}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < least:
        for name, run in subjects.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def describe_machine() -> dict[str, Any]:
    """What the figures are measured on, and how busy others keep it. To be called before the measurement."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next(
            (line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), model
        )
    busy = sample_busy()
    if busy is not None and busy > BUSY:
        print(f"others keep {busy:.0%} of this machine busy: times, and ratios too, will be off")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "busy": busy,
    }


def sample_busy(seconds: float = 1.0) -> float | None:
    """The share of all cores' time that others used while this process slept; None where the system does not say."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None

    def read() -> tuple[int, int]:
        parts = [int(part) for part in stat.read_text().splitlines()[0].split()[1:9]]
        return sum(parts), parts[3] + parts[4]  # all of it; idle, and waiting for a disk

    (whole, idle), _ = read(), time.sleep(seconds)
    later, still = read()
    return round(1 - (still - idle) / max(later - whole, 1), 2)
