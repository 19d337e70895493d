"""`robagg data`: fetch data sets and see how a split deals them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg._core.registry import fold, unknown
from robagg.cli.waiting import wait
from robagg.data import NAMES, describe, draw, fetch, load
from robagg.data.agnews import fetch_agnews
from robagg.splits import splits
from robagg.training.seeds import generator

ALL_NAMES = (*NAMES, "agnews")

data_app = typer.Typer(no_args_is_help=True, help="Fetch data sets; see who holds what.")
Root = Annotated[Path | None, typer.Option("--data", help="folder of the data; default $ROBAGG_DATA, or a cache")]


@data_app.command("get")
def fetch_data(
    name: Annotated[str, typer.Argument(help=f"one of {', '.join(ALL_NAMES)}")],
    data: Root = None,
) -> None:
    """Download a data set from its public home and check it.

    Example:

        robagg data get mnist
    """
    known = [fold(listed) for listed in ALL_NAMES]
    if fold(name) not in known:
        raise ValueError(unknown("data set", name, ALL_NAMES, known))
    folder = fetch_agnews(data) if fold(name) == "agnews" else fetch(name, data)
    typer.echo(f"{name} is there" + (f": {folder}" if folder else " (it comes with scikit-learn)"))


@data_app.command("split")
def show_split(
    name: Annotated[str, typer.Argument(help=f"one of {', '.join(NAMES)}")],
    split: Annotated[str, typer.Option(help="rho(rho=0.5), iid, dirichlet(alpha=0.5) or onelabel")] = "rho(rho=0.5)",
    n: Annotated[int, typer.Option("--n", help="clients")] = 20,
    f: Annotated[int, typer.Option("--f", help="Byzantine clients among them")] = 6,
    seed: Annotated[int, typer.Option()] = 0,
    picture: Annotated[Path | None, typer.Option(help="also draw it to this PNG")] = None,
    data: Root = None,
) -> None:
    """Show how many samples of each label every client holds.

    Example:

        robagg data split digits --split "dirichlet(alpha=0.1)" --picture split.png
    """
    with wait(f"loading {name}"):
        dataset = load(name, data)
    shards = splits.parse(split).split(dataset.train_y, n, f, generator=generator(seed, "split"))
    typer.echo(describe(dataset.train_y, shards, dataset.classes, f=f))
    if picture is not None:
        typer.echo(f"picture: {draw(dataset.train_y, shards, dataset.classes, picture, f=f, title=f'{name}, {split}')}")
