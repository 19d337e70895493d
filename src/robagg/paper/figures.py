"""The paper's figures, as PNG and PDF: lines over f or rho, bars over attacks, curves over rounds, paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robagg.data.optional import require
from robagg.paper.board import Board
from robagg.paper.numbers import find_name
from robagg.paper.pages import name_axis
from robagg.report.curves import COLOURS, MARKERS

STYLES = {
    "TQ": ("#0072B2", "*"),
    "Huber": ("#D55E00", "s"),
    "RFA": ("#E69F00", "^"),
    "MCA": ("#009E73", "D"),
    "Krum": ("#CC79A7", "X"),
    "CM": ("#56B4E9", "v"),
    "TM": ("#000000", "h"),
    "Mean": ("#666666", "P"),
    "TQ_t": ("#D55E00", "s"),
}
"""Each rule has one colour and marker in all figures: the colours of `curves`, TQ blue as in the playground."""


def draw_board(board: Board, folder: Path) -> list[Path]:
    """The figure of an experiment that is a figure in the paper; none for tables."""
    if board.experiment.kind == "table" or not board.cells:
        return []
    return _save(_draw_bars(board) if board.experiment.kind == "bars" else _draw_lines(board), board.name, folder)


def draw_computed(name: str, title: str, picture: dict[str, Any], folder: Path) -> list[Path]:
    """The picture of a computation, where it has one."""
    if not picture:
        return []
    return _save(_draw_paths(title, picture) if "paths" in picture else _draw_bias(title, picture), name, folder)


def _draw_lines(board: Board) -> Any:
    """One panel per pre-aggregator, attack or rho, one line per rule: accuracy over f or rho, or over the rounds."""
    panels, curves = board.panels, board.experiment.kind == "curves"
    across = min(3, len(panels)) if curves else len(panels)
    down = -(-len(panels) // across)
    figure = _figure(4.6 * across, 3.4 * down + 0.9 if curves else 4.2)
    grid = figure.subplots(down, across, squeeze=False, sharex=curves, sharey=True)
    shown: dict[str, Any] = {}
    for axes, panel in zip(grid.flat, panels, strict=False):
        for row in board.rows(panel):
            points = board.curves.get((panel, row, ""), []) if curves else _list_points(board, panel, row)
            style = _style(row) | ({"markevery": max(1, len(points) // 8)} if curves else {})
            if points:
                (shown[row],) = axes.plot(*zip(*points, strict=True), **style)
        over = "round" if curves else name_axis(board, panel)
        if axes in grid[-1]:
            axes.set_xlabel({"f": "Byzantine clients f", "rho": r"heterogeneity $\rho$"}.get(over, over))
        if over == "f":
            axes.set_xticks([int(column) for column in board.columns(panel)])
        axes.set_title(panel)
        axes.set_ylim(0, 100)
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("test accuracy (%)")
    return _finish(figure, shown, board.title)


def _list_points(board: Board, panel: str, row: str) -> list[tuple[float, float]]:
    spots = [(float(column), board.mean((panel, row, column))) for column in board.columns(panel)]
    return [(x, y) for x, y in spots if y is not None]


def _draw_bars(board: Board) -> Any:
    """One group per attack, one bar per rule; what knows f_max only is hatched."""
    panel = board.panels[0]
    rows, columns = board.rows(panel), board.columns(panel)
    figure = _figure(10, 4.4)
    axes = figure.subplots()
    width = 0.85 / len(rows)
    shown = {}
    for k, row in enumerate(rows):
        at = [j + (k - (len(rows) - 1) / 2) * width for j in range(len(columns))]
        heights = [board.mean((panel, row, column)) or 0.0 for column in columns]
        colour = _style(row.split("(")[0])["color"]
        hatch = "////" if "f_max" in row else None
        shown[row] = axes.bar(at, heights, width, color=colour, edgecolor="white", hatch=hatch, linewidth=0.6)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_ylim(0, 100)
    axes.set_ylabel("test accuracy (%)")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return _finish(figure, shown, board.title)


def _draw_paths(title: str, picture: dict[str, Any]) -> Any:
    """One panel per rule: the points, the honest mean, and the iterates from each start."""
    points, f, paths = picture["points"], picture["f"], picture["paths"]
    honest, byzantine = points[:-f], points[-f:]
    mean = honest.mean(0)
    rules = list(dict.fromkeys(rule for rule, _ in paths))
    figure = _figure(5.2 * len(rules), 5.2)
    grid = figure.subplots(1, len(rules), squeeze=False, sharex=True, sharey=True)[0]
    shown: dict[str, Any] = {}
    for axes, rule in zip(grid, rules, strict=True):
        shown["honest points"] = axes.scatter(*honest.T.tolist(), color=COLOURS[3], s=26, label="honest")
        shown["outliers"] = axes.scatter(*byzantine.T.tolist(), color=COLOURS[6], marker="x", s=34)
        starts = [start for name, start in paths if name == rule]
        for start, k in zip(starts, (5, 1), strict=True):
            x, y = paths[rule, start].T.tolist()
            name = f"iterates from {start}"
            (shown[name],) = axes.plot(x, y, color=COLOURS[k], marker=".", linewidth=1.4, markersize=7)
            axes.scatter(x[:1], y[:1], color=COLOURS[k], marker="s", s=46, zorder=4)
            shown["where they end"] = axes.scatter(
                x[-1:], y[-1:], facecolors="none", edgecolors="black", s=130, zorder=5, linewidths=1.6
            )
        shown["honest mean"] = axes.scatter(*mean[:, None].tolist(), color="black", marker="+", s=150, zorder=6)
        axes.set_title(rule)
        axes.set_xlabel("first coordinate")
        axes.grid(alpha=0.3)
        axes.set_aspect("equal")
    grid[0].set_ylabel("second coordinate")
    return _finish(figure, shown, title, columns=4)


def _draw_bias(title: str, picture: dict[str, Any]) -> Any:
    delta, measured, formula, tq = zip(*picture["bias"], strict=True)
    figure = _figure(6.4, 4.4)
    axes = figure.subplots()
    shown = {}
    (shown["Theorem 2"],) = axes.plot(delta, formula, color="black", linestyle="--")
    for rule, bias in (("Huber", measured), ("TQ", tq)):
        colour, marker = STYLES[rule]
        (shown[f"{rule}, measured"],) = axes.plot(delta, bias, color=colour, marker=marker, linestyle="none")
    axes.set_xlabel(r"share of Byzantine rows $\delta$")
    axes.set_ylabel("squared bias / honest variance")
    axes.grid(alpha=0.3)
    return _finish(figure, shown, title)


def _figure(width: float, height: float) -> Any:
    # A figure of its own, not pyplot's: drawing must not touch a caller's backend or open figures.
    return require("matplotlib.figure", "matplotlib", "drawing figures").Figure(
        figsize=(width, height), layout="constrained"
    )


def _finish(figure: Any, shown: dict[str, Any], title: str, columns: int = 8) -> Any:
    # An entry takes about 1.5 inches: a narrow figure has its legend in several lines.
    fits = max(2, int(figure.get_figwidth() / 1.5))
    figure.legend(
        shown.values(), shown.keys(), loc="outside lower center", ncols=min(columns, fits, len(shown)), frameon=False
    )
    figure.suptitle(title.replace(" [", "\n["), fontsize="medium")  # a mark has a line of its own
    return figure


def _style(row: str) -> dict[str, Any]:
    colour, marker = STYLES.get(find_name(row), (COLOURS[0], MARKERS[0]))
    loud = row == "TQ"
    return {
        "color": colour,
        "marker": marker,
        "linestyle": "--" if "(fixed)" in row or row == "TQ_t" else "-",
        "linewidth": 2.8 if loud else 1.3,
        "markersize": 9 if loud else 4.5,
        "zorder": 3 if loud else 2,
    }


def _save(figure: Any, name: str, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{end}" for end in ("png", "pdf")]
    for path in paths:
        figure.savefig(path, dpi=130)
    return paths
