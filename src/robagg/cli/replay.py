"""`robagg replay`: what another rule would have done in the rounds of a journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg import parse
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.threads import Threads, set_threads
from robagg.cli.waiting import wait
from robagg.report.formats import render_rows
from robagg.report.rounds import compare_clients, describe_rounds
from robagg.server import check_replayable, read_journal, replay_round


def replay(
    journal: Annotated[Path, typer.Argument(help="a journal that a server wrote", dir_okay=False)],
    rule: Annotated[str, typer.Option(help="the other rule, such as krum, tq, 'nnm >> krum'")],
    f: Annotated[float | None, typer.Option(help="how many may be Byzantine: 2, or a share such as 0.2")] = None,
    only: Annotated[int | None, typer.Option("--round", help="print this round's verdict by both rules")] = None,
    threads: Threads = None,
    plugin: PluginFiles = None,
) -> None:
    """Show what another rule would have done in each round of a journal, without the updates.

    Rules that decide by distances can be replayed (Krum, CAF, RFA, TQ, Huber, MCA and others), also behind NNM and
    Clipping where they need no median. Each round is taken as it came: with the other rule the model would have been
    another, and with it all later replies.

    Examples:

        robagg replay rounds.jsonl --rule tq --f 2

        robagg replay rounds.jsonl --rule "nnm >> krum" --f 0.2 --round 7
    """
    load_plugins(plugin)
    other = parse(rule, f=int(f) if f is not None and f.is_integer() else f)
    check_replayable(other)
    set_threads(threads)
    with wait(f"reading {journal}"):
        contents = read_journal(journal)
    if not contents.rounds:
        raise ValueError(f"{journal} must be a journal that holds rounds, got none")
    rounds = [report for report in contents.rounds if only is None or report.round == only]
    if not rounds:
        raise ValueError(f"--round must be a round of {journal}, got {only}")
    with wait(f"replaying {len(rounds)} rounds by {other}"):
        again = [replay_round(report, other) for report in rounds]
    if only is not None:
        for as_run, replayed in zip(rounds, again, strict=True):
            typer.echo(f"as it ran, {as_run}\n\nreplayed, {replayed}")
        return
    clients = compare_clients(rounds, again)
    lines = [[str(value) for value in client.values()] for client in clients]
    title = f"as it ran: {describe_rounds(rounds)}; replayed: {describe_rounds(again)}"
    typer.echo(render_rows(title, list(clients[0]) if clients else ["client"], lines, "terminal"))
    pairs = zip(rounds, again, strict=True)
    differing = [str(a.round) for a, b in pairs if {c.client for c in a.rejected} != {c.client for c in b.rejected}]
    typer.echo(f"rounds in which they rejected different clients: {', '.join(differing) or 'none'}")
