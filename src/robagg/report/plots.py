"""Figures from the records of a store: lines over what has numbers, curves over rounds, heat maps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robagg._core.checks import is_number
from robagg.data.optional import require
from robagg.report.curves import COLOURS, MARKERS
from robagg.report.measures import find_measure
from robagg.report.names import label
from robagg.report.tables import Cell, Table, sum_up, tabulate

ORDER = (5, 6, 3, 7, 2, 0, 1)
"""The colours of `curves` that differ most come first; yellow, which fades on white, does not come."""
DASHES = ("-", "--", ":", "-.")
"""Of lines beyond the colours."""
FORMATS = (".pdf", ".png", ".svg")
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # text that a publisher's checks take for text
    "svg.hashsalt": "robagg",  # equal numbers give equal files
}
"""For a column of a paper, whose text is about as large."""


def plot(
    records: Sequence[Mapping[str, Any]],
    path: str | Path,
    *,
    x: str = "round",
    y: str = "accuracy",
    lines: str = "method",
    heatmap: bool = False,
    worst: bool = False,
    width: float = 3.4,
) -> Path:
    """Draw a measure over something, a line per rule, a panel for each combination of what else differs.

    A line is the mean over seeds; its band is the 95 % interval of the mean from three seeds on, else from the lowest
    to the highest seed.

    Args:
        records: flat, as `load` gives them.
        path: the file to write, a PDF, PNG or SVG by its ending.
        x: "round" for the curves of the runs, or what `tabulate` takes as columns and has numbers: f, rho, n, a
            setting, an attack's parameter such as alie.z. With `heatmap` also names, such as attack.
        y: the accuracy, or another measure, such as the recall of the verdicts; over rounds the accuracy alone.
        lines: what has a line, or a row of the heat map.
        heatmap: draw cells with their numbers instead of lines.
        worst: draw the worst case over all attacks instead of a panel for each, but not where a rule lacks results of
            one of them.
        width: of a panel, in inches; 3.4 is a column of most proceedings.

    Example:
        >>> import tempfile
        >>> from robagg.lab import Options, grid, load, sweep
        >>> folder = Path(tempfile.mkdtemp())
        >>> runs = grid(rules=["tq", "cm"], attacks="ipm", f=[2, 4], settings={"rounds": 2})
        >>> _ = sweep(runs, folder / "runs.jsonl", options=Options(device="cpu"))
        >>> plot(load(folder / "runs.jsonl"), folder / "breakdown.pdf", x="f").name
        'breakdown.pdf'
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"a figure must be written to a file ending in {', '.join(FORMATS)}, got {path.name!r}")
    if not 1 <= width <= 20:
        raise ValueError(f"width must be from 1 to 20 inches, got {width}")
    if x == "round" and (heatmap or worst):
        raise ValueError("x must be something else than round for a heat map or the worst case, such as attack or f")
    if worst and "attack" in (x, lines):
        raise ValueError("the worst case is over the attacks, so neither x nor lines may be attack")
    if x == "round" and y != "accuracy":
        raise ValueError(f"y must be accuracy over rounds, got {y!r}, which a run has once")
    if x == "round" and not (records := unroll(records)):
        raise ValueError("the records must have curves to draw, got none")
    tables = tabulate(records, rows=lines, columns=x, measures=[y])
    if worst:
        tables = find_worst(tables)
    if not heatmap:
        for value in (value for table in tables for value in table.columns):
            if not is_number(value):
                raise ValueError(f"x must be something that has numbers, or a heat map, got {x!r} with {value!r}")
    if not any(cell.values for table in tables for cell in table.cells.values()):
        raise ValueError(f"the records must have results{' of every attack' if worst else ''} to draw, got none")
    matplotlib = require("matplotlib", "matplotlib", "drawing figures")
    with matplotlib.rc_context(STYLE):
        figure = draw(tables, width=width, heatmap=heatmap)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without date and version of what drew it, so that the same numbers give the same file.
        empty = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".png": {"Software": None}}
        figure.savefig(path, dpi=200, metadata=empty.get(path.suffix.lower(), {"Date": None}))
    return path


def unroll(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A record for each point of each curve, with its round; a run that diverged has 0 at the others' later rounds.

    >>> run = {"method": "tq", "status": "ok", "diverged": None, "curve": [(5, 40.0), (10, 90.0)]}
    >>> wild = run | {"diverged": 7, "curve": [(5, 30.0)]}
    >>> [(point["round"], point["accuracy"]) for point in unroll([run, wild])]
    [(5, 40.0), (10, 90.0), (5, 30.0), (10, 0.0)]
    """
    done = [record for record in records if record["status"] == "ok"]
    rounds: dict[Any, dict[int, None]] = {}  # of runs that are equally long
    for record in done:
        rounds.setdefault(_tell_length(record), {}).update((t, None) for t, _ in record.get("curve") or [])
    points = []
    for record in done:
        curve = dict(record.get("curve") or [])
        if record["diverged"] is not None:
            curve |= {t: 0.0 for t in rounds[_tell_length(record)] if t > max(curve, default=0)}
        points += [{**record, "round": t, "accuracy": v, "diverged": None, "curve": None} for t, v in curve.items()]
    return points


def _tell_length(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record.get("task"), record.get("rounds"), record.get("evaluate_every")


def find_worst(tables: Sequence[Table]) -> list[Table]:
    """Tables that differ in their attack alone as one, with the cell of the worst mean in each place.

    A rule that lacks results of an attack which others have in its column, or of which runs failed there, has no worst
    case: its place is empty, and a warning says so.
    """
    joined: dict[tuple[Any, ...], list[Table]] = {}
    for table in tables:
        joined.setdefault(tuple(pair for pair in table.group if pair[0] != "attack"), []).append(table)
    result, left = [], 0
    for group, parts in joined.items():
        places: dict[tuple[Any, Any], list[Cell]] = {}
        attacks: dict[Any, set[int]] = {}  # by column, but those of which no record there can have the measure
        for k, table in enumerate(parts):
            for place, cell in table.cells.items():
                known = places.setdefault(place, [])
                if cell.word != "-":
                    known.append(cell)
                    attacks.setdefault(place[1], set()).add(k)
        whole = {
            place: len(known) == len(attacks.get(place[1], ())) and not any(cell.failed for cell in known)
            for place, known in places.items()
        }
        left += sum(bool(known) and not whole[place] for place, known in places.items())
        cells = {
            place: min(known if whole[place] else [], key=lambda cell: cell.merit, default=sum_up([]))
            for place, known in places.items()
        }
        rows, columns = ({k: None for table in parts for k in getattr(table, name)} for name in ("rows", "columns"))
        title = ", ".join(f"{name}={value}" for name, value in group)
        result.append(Table(title, (*group, ("attack", "worst")), parts[0].axes, (*rows,), (*columns,), cells))
    if left:
        warnings.warn(f"worst cases left out, since results of some attack are missing or failed: {left}", stacklevel=3)
    return result


def draw(tables: Sequence[Table], *, width: float, heatmap: bool) -> Any:
    """A figure with a panel for each table; what differs between them stands over each."""
    across = min(2, len(tables))
    down = -(-len(tables) // across)
    rows = list(dict.fromkeys(row for table in tables for row in table.rows))
    names = [label(row, tables[0].axes[0], dict(tables[0].group), display=True) for row in rows]
    fits = max(1, int(width * across / (0.45 + 0.062 * max(map(len, names)))))
    height = width * 0.72 * down + (0 if heatmap else 0.1 + 0.17 * -(-len(names) // fits))
    # A figure of its own, not pyplot's: drawing must not touch a caller's backend or open figures.
    figure = require("matplotlib.figure", "matplotlib", "drawing figures").Figure(
        figsize=(width * across, height), layout="constrained"
    )
    axes = figure.subplots(down, across, squeeze=False)
    for at, table in zip(axes.flat, tables, strict=False):
        (_draw_cells if heatmap else _draw_lines)(at, table, rows)
        if len(tables) > 1:
            at.set_title(", ".join(_describe(table, tables)))
    for at in axes.flat[len(tables) :]:
        at.set_visible(False)
    if not heatmap:
        shown = {text: line for at in axes.flat for line, text in zip(*at.get_legend_handles_labels(), strict=True)}
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=fits, frameon=False)
    return figure


def _describe(table: Table, tables: Sequence[Table]) -> list[str]:
    """What tells a table from the others."""
    group = dict(table.group)
    differing = [name for name in group if len({str(dict(other.group).get(name)) for other in tables}) > 1]
    named = ("attack", "method", "mixers", "core")
    return [
        label(group[name], name, group, display=True) if name in named else f"{name}={group[name]}"
        for name in differing
    ]


def _draw_lines(axes: Any, table: Table, rows: Sequence[Any]) -> None:
    group = dict(table.group)
    for k, row in enumerate(rows):
        points = [(x, table.cells[row, x]) for x in sorted(table.columns) if (row, x) in table.cells]
        points = [(x, cell) for x, cell in points if cell.values]
        if not points:
            continue
        colour, marker = COLOURS[ORDER[k % len(ORDER)]], MARKERS[k % len(MARKERS)]
        at = [x for x, _ in points]
        bands = [cell.interval or (min(cell.values), max(cell.values)) for _, cell in points]
        axes.fill_between(at, *zip(*bands, strict=True), color=colour, alpha=0.15, linewidth=0)
        name = label(row, table.axes[0], group, display=True)
        means = [cell.mean for _, cell in points]
        every, dashes = max(1, len(points) // 10), DASHES[k // len(ORDER) % len(DASHES)]
        axes.plot(at, means, color=colour, marker=marker, linestyle=dashes, markevery=every, label=name)
    name = str(group.get("measure", "accuracy"))
    percent = find_measure(name).percent
    axes.set(xlabel=table.axes[1], ylabel=f"{name} (%)" if percent else name, ylim=(-2, 102) if percent else None)
    columns = sorted(table.columns)
    if "." in table.axes[1] and columns[0] > 0 and columns[-1] / columns[0] > 8:  # strengths far apart
        axes.set_xscale("log")
        axes.set_xticks(columns, [f"{value:g}" for value in columns])
        axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)


def _draw_cells(axes: Any, table: Table, rows: Sequence[Any]) -> None:
    group = dict(table.group)
    own = [row for row in rows if row in table.rows]
    cells = [[table.cells.get((row, column), Cell()) for column in table.columns] for row in own]
    means = [[float("nan") if cell.mean is None else cell.mean for cell in line] for line in cells]
    axes.imshow(means, cmap="cividis", vmin=0, vmax=100, aspect="auto")
    for i, values in enumerate(means):
        for j, value in enumerate(values):
            text, light = ("-", False) if value != value else (f"{value:.0f}", value < 50)
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if light else "black")
    names = [label(c, table.axes[1], group, display=True) for c in table.columns]
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right")
    axes.set_yticks(range(len(own)), [label(row, table.axes[0], group, display=True) for row in own])
