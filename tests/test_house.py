"""Where things live: imports point one way, the folders and the public names agree, the core needs torch and NumPy."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import robagg
from documents.scripts import load_script
from robagg import Mixer, Rule
from robagg._core.rule import stages

HOUSE = Path(robagg.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(path for path in HOUSE.rglob("*.py") if path != HOUSE / "__init__.py")
PRIVATE = {"_core", "kernels", "cli", "paper", "profile"}
"""Packages that users do not import from."""
TREES = {"_core": "core", "documents": "documents", "packaging": "packaging", "studies": "studies"}
"""Folders of tests that are not named after a package."""


@pytest.fixture(scope="module")
def imports() -> ModuleType:
    """docs/scripts/imports.py, which knows the floors and reads the imports."""
    return load_script("imports")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_point_down(path: Path, imports: ModuleType) -> None:
    part, *below = path.relative_to(HOUSE).with_suffix("").parts
    if below:
        found = imports.join_packages({imports.name_module(path): imports.read_imports()[imports.name_module(path)]})
        assert found[part] <= imports.allow(part), f"{path.name} of {part} may not import {found[part]}"
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"{path}: imports are written in full"


def test_no_module_or_package_imports_itself_by_way_of_others(imports: ModuleType) -> None:
    """Lazy imports and those for type checkers count."""
    found = imports.read_imports()
    assert "robagg.training.gradients.triton.weights" in found["robagg.training.gradients.dense.convolution"]  # lazy
    assert {"robagg.rules", "robagg._core.mixer"} <= found["robagg"]
    for graph in (found, imports.join_packages(found)):
        list(TopologicalSorter(graph).static_order())  # raises where there is a circle


def test_the_picture_of_the_imports_is_what_the_code_has(imports: ModuleType) -> None:
    drawn = imports.draw(imports.join_packages(imports.read_imports()))
    assert imports.PICTURE.read_text() == drawn, "run python docs/scripts/imports.py"
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path in HOUSE.glob("*/__init__.py"):
        assert f">{path.parent.name}</text>" in drawn
        assert f"`{path.parent.name}`" in page, f"docs/architecture.md does not say what {path.parent.name} holds"


def read_programs(text: str, name: str) -> str:
    """The Python in a page or a file."""
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join(blocks) if name.endswith(".md") else text


def test_examples_and_pages_import_public_names_only() -> None:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "examples").rglob("*")]
    files += [path for path in (ROOT / "docs").rglob("*") if "scripts" not in path.parts]
    seen = set()
    for path in files:
        if path.suffix not in (".py", ".md"):
            continue
        for node in ast.walk(ast.parse(read_programs(path.read_text(), path.name))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("robagg.") for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "robagg":
                _, *below = (node.module or "").split(".")
                assert len(below) < 2, f"{path} imports from {node.module}"
                assert not PRIVATE & set(below), f"{path} imports from {node.module}"
                if below in (["flower"], ["nvflare"]):  # they may not be installed here
                    continue
                public = importlib.import_module(node.module or "").__all__
                assert {alias.name for alias in node.names} <= set(public), f"{path} takes what {node.module} hides"
                seen.add(path.suffix)
    assert seen == {".py", ".md"}


def test_the_page_of_names_says_which_packages_are_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text().partition("Everything else is private")[0]
    for path in HOUSE.glob("*/__init__.py"):
        name = path.parent.name
        assert (f"`robagg.{name}`" in page) == (name not in PRIVATE), name


def test_the_version_is_the_same_everywhere() -> None:
    released = re.search(
        r"^## (\S+) \((\d{4}-\d\d-\d\d|unreleased)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert released is not None and cited is not None
    assert robagg.__version__ == released[1] == cited[1]


def test_files_are_short_enough_to_be_read() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 250, f"{path} has more than 250 lines: part it by concept"


def test_tests_stand_where_what_they_test_stands() -> None:
    packages = {TREES.get(path.parent.name, path.parent.name) for path in HOUSE.glob("*/__init__.py")}
    for folder in ROOT.glob("tests/*/"):
        if folder.name != "__pycache__":
            assert folder.name in packages | set(TREES.values()), f"no package is called {folder.name}"


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


def test_help_explains_every_field_of_what_is_public() -> None:
    seen = set()
    for name in ("", *(path.parent.name for path in HOUSE.glob("*/__init__.py"))):
        if name in PRIVATE | {"flower", "nvflare"}:  # the latter may not be installed here, and have none
            continue
        package = importlib.import_module(f"robagg.{name}".rstrip("."))
        for cls in map(package.__dict__.get, package.__all__):
            if isinstance(cls, type) and is_dataclass(cls):
                seen.add(cls)
                for field in fields(cls):
                    doc = cls.__doc__ or ""
                    assert f" {field.name}: " in doc or f"`{field.name}`" in doc, f"{cls.__name__} lacks {field.name}"
    assert len(seen) > 60
    for cls in (robagg.Weights, robagg.Sketch, robagg.View, robagg.Settings, robagg.Verdict):
        assert cls in seen and ">>> " in (cls.__doc__ or ""), f"{cls.__name__} must show how it is used"


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
