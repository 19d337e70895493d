"""`robagg list`: what there is to choose from."""

from __future__ import annotations

import dataclasses
import inspect
import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from robagg._core.mixer import Mixer
from robagg._core.registry import Named, Registry
from robagg._core.rule import Rule, stages
from robagg.attacks import attacks
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.splits import splits
from robagg.tasks.base import tasks


class Kind(StrEnum):
    """What can be listed."""

    rules = "rules"
    mixers = "mixers"
    attacks = "attacks"
    tasks = "tasks"
    splits = "splits"


def list_names(
    kind: Annotated[Kind, typer.Argument(help="what to list")],
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, for programs")] = False,
) -> None:
    """List rules, pre-aggregators (mixers), attacks, tasks or splits, with their parameters.

    Examples:

        robagg list rules

        robagg list attacks --json
    """
    load_plugins(plugin)
    found = [describe(cls) for cls in members(kind)]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "parameters", "also called", "what it is"):
        table.add_column(column)
    for entry in found:
        parameters = ", ".join(f"{k}={v!r}" for k, v in entry["parameters"].items())
        others = map(escape, (parameters, ", ".join(entry["aliases"]), entry["summary"]))
        table.add_row(f"[bold]{entry['name']}[/]", *others)
    Console().print(table)


def members(kind: Kind) -> list[type[Named]]:
    """The classes of one kind, by name."""
    if kind in (Kind.rules, Kind.mixers):
        base = Rule if kind is Kind.rules else Mixer
        return [cls for cls in stages.classes().values() if issubclass(cls, base)]
    registries: dict[Kind, Registry[Any]] = {Kind.attacks: attacks, Kind.tasks: tasks, Kind.splits: splits}
    return list(registries[kind].classes().values())


def describe(cls: type[Named]) -> dict[str, Any]:
    """Name, parameters with their defaults, other names, and the first line of the docstring."""
    return {
        "name": cls.name(),
        "parameters": {f.name: _read_default(f) for f in dataclasses.fields(cls)},  # type: ignore[arg-type]
        "aliases": list(vars(cls).get("aliases", ())),
        "summary": (inspect.getdoc(cls) or "").split("\n")[0],
    }


def _read_default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return "required" if field.default is dataclasses.MISSING else field.default
