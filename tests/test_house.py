"""Where things live: imports point one way, the folders and the public names agree, the core needs torch and NumPy."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import robagg
from robagg import Mixer, Rule
from robagg._core.rule import stages

HOUSE = Path(robagg.__file__).parent
FLOORS = [
    {"kernels"},
    {"_core"},
    {"rules", "mixers"},
    {"theory", "worst_case"},
    {"attacks"},
    {"data", "models", "splits"},
    {"training"},
    {"tasks"},
    {"plugins"},
    {"lab"},
    {"report"},
    {"paper"},
    {"cli", "__main__"},
]
"""Lower floors do not know of upper ones. `flower` stands beside the house, on `rule` and what is below the rules."""
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
MODULES = sorted(path for path in HOUSE.rglob("*.py") if path != HOUSE / "__init__.py")


def part_of(path: Path) -> str:
    return path.relative_to(HOUSE).with_suffix("").parts[0]


def imported_parts(path: Path) -> set[str]:
    """The parts of the package that a module imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            if node.module == "robagg":
                found |= {alias.name for alias in node.names if (HOUSE / alias.name).exists() or alias.name in LEVEL}
            elif (node.module or "").startswith("robagg."):
                found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("robagg.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    if part == "flower":
        allowed = LEVEL["rules"]
    else:
        assert part in LEVEL, f"say in FLOORS on which floor {part} lives"
        allowed = LEVEL[part]
    for other in imported_parts(path) - {part}:
        assert LEVEL[other] <= allowed, f"{path.name} of {part} imports {other}, which is above it"


def test_some_import_is_seen() -> None:
    assert imported_parts(HOUSE / "rules" / "tq.py") == {"_core"}


def test_one_file_holds_one_class_and_is_named_after_it() -> None:
    for name, cls in stages.classes().items():
        assert cls.__module__.rsplit(".", 1)[1] == name


@pytest.mark.parametrize(("folder", "base"), [("rules", Rule), ("mixers", Mixer)])
def test_names_re_exported_are_those_found_in_the_folders(folder: str, base: type) -> None:
    found = {cls.__name__: cls for cls in stages.classes().values() if issubclass(cls, base)}
    package = sys.modules[f"robagg.{folder}"]
    assert set(package.__all__) == set(found)
    for name, cls in found.items():
        assert getattr(package, name) is cls
        assert getattr(robagg, name) is cls
        assert name in robagg.__all__


def test_all_public_names_are_there() -> None:
    assert sorted(set(robagg.__all__)) == sorted(robagg.__all__)
    for name in robagg.__all__:
        assert name in ("F", "State") or getattr(robagg, name).__module__.startswith("robagg.")


def test_every_public_class_says_what_it_is_with_example_and_references() -> None:
    for cls in stages.classes().values():
        doc = cls.__doc__ or ""
        for part in ("Args:", "Example:", ">>> ", "References:"):
            assert part in doc, f"{cls.__name__} lacks {part}"
        for field in fields(cls):
            assert f" {field.name}: " in doc, f"{cls.__name__} does not describe {field.name}"


def test_importing_the_core_brings_in_torch_and_numpy_only() -> None:
    unwanted = ["typer", "rich", "matplotlib", "sklearn", "pooch", "flwr", "ray", "tqdm"]
    code = (
        "import sys, torch\nbefore = set(sys.modules)  # torch itself takes tqdm where it finds it\nimport robagg\n"
        f"print([name for name in {unwanted!r} if name in set(sys.modules) - before])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(HOUSE.parent), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.strip() == "[]"
