"""A clear word where Flower is missing or too old."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

VERSION = Path(__file__).parents[2] / "src" / "robagg" / "flower" / "version.py"


def load():  # type: ignore[no-untyped-def]
    """The module by itself: where Flower is missing the package does not import, which is the point."""
    namespace: dict[str, object] = {"__name__": "version_alone"}
    exec(compile(VERSION.read_text(), str(VERSION), "exec"), namespace)
    return namespace


@pytest.mark.parametrize("found", ["1.41.0", "1.42.0", "1.50.1.dev3", "2.0"])
def test_tested_and_newer_versions_are_let_in(found: str) -> None:
    module = load()
    module["version"] = lambda name: found
    module["check_flower"]()


@pytest.mark.parametrize("found", ["1.40.0", "1.9", "0.20"])
def test_an_old_one_is_named(found: str) -> None:
    module = load()
    module["version"] = lambda name: found
    with pytest.raises(ImportError, match=rf"needs flwr 1\.41 or newer, got {found}: pip install 'robagg\[flower\]'"):
        module["check_flower"]()


def test_a_missing_one_is_named() -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    module = load()
    module["version"] = missing
    with pytest.raises(ImportError, match="not installed: pip install"):
        module["check_flower"]()


def test_the_core_does_not_import_flower() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, robagg; print('flwr' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"
