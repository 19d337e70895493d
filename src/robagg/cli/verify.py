"""`robagg verify`: whether a journal is whole, or lines of it were changed or are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.waiting import wait
from robagg.server import verify_journal
from robagg.server.journal import read_hash, read_journal, read_last


def verify(
    journal: Annotated[Path, typer.Argument(help="a journal that a server wrote", exists=True, dir_okay=False)],
    head: Annotated[str | None, typer.Option(help="the hash of its last line, which was kept elsewhere")] = None,
) -> None:
    """Check that no line of a journal was changed or is missing; its exit code is 1 where one was or is.

    Examples:

        robagg verify rounds.jsonl

        robagg verify rounds.jsonl --head 215caced6426bc2b6b297a15af151e39ec8f03d85ba26010dac740508ee4f79a
    """
    with wait(f"checking {journal}"):
        faults = verify_journal(journal, head=head)
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)
    if (last := read_last(journal)) is None:
        raise ValueError(f"{journal} must be a journal that holds rounds, got none")
    typer.echo(f"{len(read_journal(journal).rounds)} rounds, none changed and none missing; the last hash is:")
    typer.echo(read_hash(last))
