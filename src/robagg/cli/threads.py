"""`--threads`, which commands share."""

from __future__ import annotations

from typing import Annotated

import torch
import typer

Threads = Annotated[int | None, typer.Option("--threads", help="threads of torch; default: torch's own number", min=1)]


def set_threads(count: int | None) -> None:
    """Take so many threads for the rest of the command."""
    if count is not None:
        torch.set_num_threads(count)
