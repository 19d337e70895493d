"""The tables of a profile: the worst case of each rule, and of each rule in each family."""

from __future__ import annotations

from collections.abc import Sequence

from robagg.profile.families import Family
from robagg.profile.gather import Found, Point
from robagg.profile.plan import CONTROL
from robagg.report.formats import render_rows

Table = tuple[list[str], list[list[str]]]
"""A head, and lines under it."""


def list_worst(found: Found) -> Table:
    """The worst case of each rule."""
    head = ["rule", "worst case", "95 % interval", "attack", "seeds", "lowest run", "no attack", "runs"]
    lines = []
    for rule in found.profile.rules:
        worst, control = found.find_worst_of_all(rule), found.find_worst(rule, CONTROL)
        if worst is None:
            lines.append([rule, *"-----", _write(control), str(found.runs[rule])])
            continue
        interval = "-" if worst.cell.interval is None else "{:.1f} to {:.1f}".format(*worst.cell.interval)
        seeds = str(len(worst.cell.values))
        lowest = f"{found.find_lowest(rule):.1f}"
        values = [f"{worst.mean:.1f}", interval, worst.attack, seeds, lowest, _write(control), str(found.runs[rule])]
        lines.append([rule, *values])
    return head, lines


def list_families(found: Found) -> Table:
    """The worst case of each rule in each family, with the strength at which it was found."""
    profile = found.profile
    named: list[Family | str] = [*profile.families, *profile.plain]
    lines = []
    for family in named:
        name = family if isinstance(family, str) else family.name
        title = family if isinstance(family, str) else family.title
        points = [found.find_worst(rule, name) for rule in profile.rules]
        if any(point is not None for point in points):
            parameter = "" if isinstance(family, str) else family.parameter
            lines.append([title, *(tell(point, parameter) for point in points)])
    return ["attack", *profile.rules], lines


def tell(point: Point | None, parameter: str = "") -> str:
    """`61.2 (58.0 to 64.1) at z=0.7`: the mean over seeds, the least and the most of them, and the strength."""
    if point is None or not point.cell.values:
        return "-"
    values = point.cell.values
    seeds = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
    place = f" at {parameter}={point.strength:g}" if parameter and point.strength is not None else ""
    return f"{point.mean:.1f}{seeds}{place}"


def _write(point: Point | None) -> str:
    return "-" if point is None or point.cell.mean is None else f"{point.mean:.1f}"


NOTES = (
    "In brackets the lowest and the highest seed; without them, one seed. Intervals: Student's t, from three seeds on.",
    "This is the worst that was found. Strengths were searched for on the first seed; another attack may be worse.",
)


def write_page(found: Found, figures: Sequence[str], *, quick: bool) -> str:
    """The profile as a page of Markdown."""
    profile = found.profile
    run = profile.make(profile.rules[0], "none", profile.seeds[0])
    seeds = ", ".join(map(str, profile.seeds))
    mark = ", a quick look" if quick else ""
    how = run.effective
    lines = [
        f"# The profile on {profile.task}{mark}",
        "",
        f"n={run.n}, f={run.f}, {run.split}, {how.rounds} rounds, momentum {how.momentum:g}, rate {how.rate:g}, "
        f"seeds {seeds}.",
        "",
        render_rows("", *list_worst(found), "markdown"),
        "",
        render_rows("", *list_families(found), "markdown"),
        "",
        *NOTES,
        "",
    ]
    for name in figures:
        lines += [f"![Accuracy over strength: {name.removesuffix('.png')}]({name})", ""]
    return "\n".join(lines)
