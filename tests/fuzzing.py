"""What may come from outside, drawn at random: none of it may end in anything but a sentence.

`python tests/fuzzing.py 100000 [seed] [kind ...]` tries so many of each kind and prints how many were taken.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from files import npy
from files.fuzzing import try_drawn
from lab.fuzzing import try_rule, try_store, try_sweep

TRIES: dict[str, Callable[[random.Random, Path], bool]] = {
    "stores": try_store,
    "sweeps": try_sweep,
    "rules": try_rule,
    "safetensors": try_drawn,
    "npz": npy.try_npz,
    "replies": npy.try_reply,
}


def fuzz(kind: str, count: int, seed: int) -> int:
    """How many of so many inputs were taken; one that ends in anything but a sentence raises, with its number."""
    draws, taken = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            try:
                taken += TRIES[kind](draws, Path(folder))
            except BaseException as error:
                error.add_note(f"{kind}, seed {seed}, input {number}")
                raise
    return taken


if __name__ == "__main__":
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for kind in sys.argv[3:] or TRIES:
        begin = time.perf_counter()
        taken = fuzz(kind, count, seed)
        print(
            f"{count} {kind} from seed {seed}, {taken} of them taken, in {time.perf_counter() - begin:.0f} s",
            flush=True,
        )
