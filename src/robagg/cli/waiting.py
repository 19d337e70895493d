"""A sign of life for what takes more than a moment and has no steps to count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def wait(text: str) -> Iterator[None]:
    """On a terminal, say what goes on and since when, on the error output; gone when it is over.

    Example:
        >>> with wait("reading runs.jsonl"):
        ...     print("read")
        read
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task(text, total=None)
        yield
