"""The threads that torch computes with on a CPU, for our C passes to use.

They are warm, and between two calls of torch they spin: threads of our own would share the cores with them.
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import sys

# A child of multiprocessing that was started afresh says so on its command line.
forked = multiprocessing.parent_process() is not None and "--multiprocessing-fork" not in sys.orig_argv
"""Whether this process was forked: OpenMP's threads stayed behind in its parent, and it would wait for them forever."""


def address() -> int | None:
    """Where in this process the OpenMP function lies that gives work to them; None where they cannot be had."""
    return None if forked else _find()


@functools.cache
def _find() -> int | None:
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError, TypeError):
        return None


def _leave() -> None:
    global forked
    forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)
