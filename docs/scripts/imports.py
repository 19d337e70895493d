"""What imports what in the package, and the picture of it in docs/architecture.md: run this file to draw it again."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

HOUSE = Path(__file__).parents[2] / "src" / "robagg"
PICTURE = Path(__file__).parents[1] / "images" / "imports.svg"

ROW = 58
HEAD = (
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="5" refY="3" orient="auto">'
    '<path d="M0 0L6 3L0 6z" fill="#5b6b8c"/></marker></defs>'
)

FLOORS: dict[str, tuple[str, ...]] = {
    "engine": ("kernels", "_core"),
    "what sends, what decides": ("attacks", "mixers", "rules"),
    "training and theory": ("data", "splits", "models", "training", "tasks", "theory", "worst_case"),
    "many runs": ("lab",),
    "results": ("report", "profile", "paper"),
    "commands": ("cli",),
}
"""From below. A package may import those of its own floor, as long as no cycle comes of it, and of all floors below."""
BESIDE: dict[str, tuple[str, ...]] = {
    "server": ("_core", "kernels", "rules", "mixers"),
    "flower": ("_core", "kernels", "rules", "mixers", "server"),
    "nvflare": ("_core", "kernels", "rules", "mixers", "server"),
    "files": ("_core", "kernels", "rules", "mixers"),
    "distributed": ("_core", "kernels", "rules"),
}
"""Packages that stand beside the floors, on these alone."""
ALSO = {"report": {"server"}, "paper": {"server"}, "cli": {"server", "files"}}
"""What packages on the floors import from beside them: `server` for its journal, and what is a command."""
COLUMNS = {
    **{"kernels": 3.1, "_core": 3.1, "attacks": 3.5, "mixers": 4.6, "rules": 5.6},
    **{"data": 0.1, "splits": 1.1, "models": 2.1, "training": 2.6, "tasks": 1.1, "theory": 5.3, "worst_case": 4.2},
    **{"lab": 1.1, "report": 1.1, "profile": 2.2, "paper": 3.3, "cli": 3.9},
    **{"server": 6.7, "flower": 6.7, "nvflare": 7.7, "files": 7.9, "distributed": 9.0},
}
"""Where a package stands in the picture, from left to right."""


def name_module(path: Path) -> str:
    """`src/robagg/rules/tq.py` is `robagg.rules.tq`; a package is its `__init__`."""
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def read_imports() -> dict[str, set[str]]:
    """Each module of the package and those of ours that it imports: also lazily, or for type checkers alone.

    `from robagg import TQ` is an import of the module that TQ comes from, and `from robagg import kernels` of kernels.
    """
    paths = {name_module(path): path for path in sorted(HOUSE.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    doors = {name: _read_doors(tree) for name, tree in trees.items() if paths[name].name == "__init__.py"}
    return {name: _find(name, tree, trees, doors) for name, tree in trees.items()}


def _read_doors(tree: ast.Module) -> dict[str, str]:
    """Which module each name that a package exports comes from."""
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module or "" for node in froms for alias in node.names}


def _find(name: str, tree: ast.Module, known: dict[str, ast.Module], doors: dict[str, dict[str, str]]) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                source = doors["robagg"].get(alias.name, "robagg") if node.module == "robagg" else node.module
                found.add(inner if inner in known else source)
    # A module's packages are run before it, but for those that the importer stands in.
    outer = {".".join(other.split(".")[:k]) for other in found for k in range(2, other.count(".") + 1)}
    return {other for other in found | outer if other != name and (other in found or not name.startswith(other))}


def join_packages(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same between packages; modules that stand in the root itself are left out."""
    joined: dict[str, set[str]] = {
        path.name: set() for path in sorted(HOUSE.iterdir()) if (path / "__init__.py").exists()
    }
    for name, others in imports.items():
        part = f"{name}.".split(".")[1]
        if part in joined:
            joined[part] |= {f"{other}.".split(".")[1] for other in others} & (joined.keys() - {part})
    return joined


def reduce(packages: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the edges that follow from others."""

    def reach(part: str) -> set[str]:
        return packages[part].union(*(reach(other) for other in packages[part]))

    return {part: others - set().union(*(reach(other) for other in others)) for part, others in packages.items()}


def allow(part: str) -> set[str]:
    """What a package may import."""
    if part in BESIDE:
        return set(BESIDE[part])
    level = next((k for k, floor in enumerate(FLOORS.values()) if part in floor), None)
    if level is None:
        raise ValueError(f"{part} must stand on a floor of docs/scripts/imports.py or beside them")
    below = {other for floor in [*FLOORS.values()][: level + 1] for other in floor} - {part}
    return below | ALSO.get(part, set())


def draw(packages: dict[str, set[str]]) -> str:
    """The packages on their floors, with arrows to what they import but for what follows from other arrows."""
    packages = {part: others for part, others in packages.items() if part in COLUMNS}
    edges = reduce(packages)
    order = [*TopologicalSorter(packages).static_order()]
    rows: dict[str, int] = {}
    bands: list[tuple[str, int, int]] = []
    for title, floor in FLOORS.items():
        first = max(rows.values(), default=-1) + 1
        for part in (part for part in order if part in floor):
            rows[part] = max([first, *(rows[other] + 1 for other in packages[part] if other in floor)])
        bands.append((title, first, max(rows[part] for part in floor)))
    for part in (part for part in order if part in BESIDE):
        rows[part] = max(rows[other] for other in packages[part]) + 1
    height = ROW * (max(rows.values()) + 1)
    width = 160 + int(110 * (max(COLUMNS[part] for part in packages) + 1))
    place = {part: (160 + 110 * COLUMNS[part], height - ROW * (row + 0.5)) for part, row in rows.items()}
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">', HEAD]
    for k, (title, low, high) in enumerate(bands):
        y, size = height - ROW * (high + 1), ROW * (high - low + 1)
        lines.append(f'<rect y="{y}" width="{width}" height="{size}" fill="{("#eef2fb", "#f8f9fd")[k % 2]}"/>')
        lines.append(f'<text x="10" y="{y + size / 2 + 4:g}" font-size="12" fill="#555">{title}</text>')
    aside = [place[part] for part in BESIDE if part in place]
    left, top = min(x for x, _ in aside) - 59, min(y for _, y in aside) - 44
    bottom = max(y for _, y in aside) + 24
    lines.append(f'<rect x="{left:g}" y="{top:g}" width="{width - left - 6:g}" height="{bottom - top:g}" fill="#fff"/>')
    lines.append(f'<text x="{left + 12:g}" y="{top + 19:g}" font-size="12" fill="#555">beside the floors</text>')
    for part in sorted(edges):
        for other in sorted(edges[part]):
            (x, y), (u, v) = place[part], place[other]
            lines.append(
                f'<path d="M{x:g} {y + 15:g} C{x:g} {y + 40:g} {u:g} {v - 40:g} {u:g} {v - 17:g}" fill="none" '
                'stroke="#5b6b8c" marker-end="url(#tip)"/>'
            )
    for part, (x, y) in sorted(place.items()):
        box = f'<rect x="{x - 47:g}" y="{y - 15:g}" width="94" height="30" rx="6" fill="#fff" stroke="#33415f"/>'
        lines += [box, f'<text x="{x:g}" y="{y + 5:g}" font-size="14" text-anchor="middle">{part}</text>']
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(join_packages(read_imports())), encoding="utf-8")
