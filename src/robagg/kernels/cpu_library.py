"""The compiled library (cpu.c) and what it takes: loaded with ctypes, which lets other Python threads run meanwhile."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

ISAS = ("plain", "avx2", "avx512")
_ABI = 8


class Job(ctypes.Structure):
    """A pass over the rows: `struct job`."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("op", "isa", "wide", "threads")),
        *((name, ctypes.c_int64) for name in ("n", "m", "anchors", "d", "lo", "hi")),
        *((name, ctypes.c_void_p) for name in ("votes", "rows", "weights", "value")),
        *((name, ctypes.c_void_p) for name in ("spread", "gram", "alarm", "parallel")),
        ("floor", ctypes.c_double),
    )


class Walk(ctypes.Structure):
    """The loop of a rule on the Gram matrix: `struct walk`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "size", "n", "iterations", "anchor")),
        *((name, ctypes.c_double) for name in ("f", "parameter", "rounding", "blur", "spread")),
        *((name, ctypes.c_void_p) for name in ("gram", "votes", "c", "reach", "tau", "scratch", "outside")),
    )


class Filter(ctypes.Structure):
    """The loop of a filter on the Gram matrix: `struct filter`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("n", "size", "steps")),
        *((name, ctypes.c_double) for name in ("f", "level")),
        *((name, ctypes.c_void_p) for name in ("gram", "votes", "left", "scratch")),
    )


class Product(ctypes.Structure):
    """Products of all pairs of rows: `struct product`."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("isa", "wide", "threads", "same")),
        *((name, ctypes.c_int64) for name in ("m", "n", "d")),
        *((name, ctypes.c_void_p) for name in ("left", "right")),
        ("centre", ctypes.c_int64 * 3),
        *((name, ctypes.c_void_p) for name in ("out", "parallel")),
    )


class Projection(ctypes.Structure):
    """Rows projected onto few numbers: `struct projection`."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("isa", "wide", "threads", "unused")),
        *((name, ctypes.c_int64) for name in ("n", "d", "k")),
        *((name, ctypes.c_void_p) for name in ("rows", "signs", "shifts", "out", "parallel")),
    )


class Nearest(ctypes.Structure):
    """Each row's nearest rows: `struct nearest`."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("isa", "threads")),
        *((name, ctypes.c_int64) for name in ("n", "size", "count")),
        *((name, ctypes.c_void_p) for name in ("gram", "sums", "means", "parallel")),
    )


def load() -> ctypes.CDLL | None:
    """The library beside this file, or None where it is missing, does not load, or is of another version."""
    opened = _open()
    return None if isinstance(opened, str) else opened


def explain() -> str:
    """Why the library is not there, in a sentence; empty where it is."""
    opened = _open()
    return opened if isinstance(opened, str) else ""


@functools.cache
def _open() -> ctypes.CDLL | str:
    path = Path(__file__).with_name("_cpu.dylib" if sys.platform == "darwin" else "_cpu.so")
    if not path.exists():
        return "it was not built: there was no C compiler when robagg was installed"
    try:
        library = ctypes.CDLL(str(path))
        if library.robagg_abi() != _ABI:
            return "it is of another version of robagg: install robagg again"
        library.robagg_run.argtypes = [ctypes.POINTER(Job)]
        library.robagg_walk.argtypes = [ctypes.POINTER(Walk)]
        library.robagg_walk.restype = None
        if hasattr(library, "robagg_filter"):
            library.robagg_filter.argtypes = [ctypes.POINTER(Filter)]
            library.robagg_filter.restype = None
        if hasattr(library, "robagg_product"):
            library.robagg_product.argtypes = [ctypes.POINTER(Product)]
            library.robagg_project.argtypes = [ctypes.POINTER(Projection)]
            library.robagg_nearest.argtypes = [ctypes.POINTER(Nearest)]
    except (OSError, AttributeError) as error:
        return f"it does not load: {error}"
    return library


def available() -> bool:
    """Whether the library is there to run."""
    return load() is not None


def isas() -> tuple[str, ...]:
    """The instruction sets of the library that this machine has, best last."""
    library = load()
    return () if library is None else ISAS[: library.robagg_isa() + 1]


@functools.cache
def isa() -> str:
    """The instruction set that runs: the best there is, or the one that the environment names in ROBAGG_ISA."""
    there = isas()
    if not there:
        raise RuntimeError("the CPU kernels are not there: build them with `python hatch_build.py` or reinstall robagg")
    choice = os.environ.get("ROBAGG_ISA", there[-1])
    if choice not in there:
        raise ValueError(f"ROBAGG_ISA must be one of {', '.join(there)} on this machine, got {choice}")
    return choice
