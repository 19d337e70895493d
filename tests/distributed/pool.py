"""Processes that stand for ranks: started once, they run what tests send them, side by side."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

PATIENCE = 300.0
"""Seconds that a program may take, on a machine that does much else."""


class Pool:
    """Processes in one gloo group; a program is `f(group, *given)`, and what it returns comes back by rank."""

    def __init__(self, size: int, folder: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(size):
            ours, theirs = spawn.Pipe()
            args = (theirs, rank, size, str(folder / "store"))
            self.processes.append(spawn.Process(target=_work, args=args, daemon=True))
            self.pipes.append(ours)
            self.processes[-1].start()
            theirs.close()

    def run(self, program: Callable[..., Any], *given: Any, ranks: int | None = None) -> list[Any]:
        """What the program returns on each of the first `ranks`; an error of any is raised here."""
        for pipe in self.pipes:
            pipe.send((program, given, len(self.pipes) if ranks is None else ranks))
        end = time.monotonic() + PATIENCE
        answers = []
        for rank, pipe in enumerate(self.pipes):
            assert pipe.poll(max(0.0, end - time.monotonic())), f"rank {rank} did not answer"
            answers.append(pipe.recv())
        for rank, (error, _) in enumerate(answers):
            assert not error, f"rank {rank}:\n{error}"
        return [answer for _, answer in answers][:ranks]

    def close(self) -> None:
        for process in self.processes:
            process.terminate()


def _work(pipe: Connection, rank: int, size: int, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=PATIENCE),
    )
    groups = {count: dist.new_group(list(range(count))) for count in range(1, size)} | {size: None}
    while True:
        program, given, count = pipe.recv()
        try:
            pipe.send(("", program(groups[count], *given) if rank < count else None))
        except Exception:
            pipe.send((traceback.format_exc(), None))
