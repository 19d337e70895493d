"""A clear word where the framework of an adapter is missing or too old."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distributions

import pytest

from robagg.server import requirement
from robagg.server.requirement import check_requirement

FLOWER = ("robagg.flower", "flwr", (1, 41), "Flower")


@pytest.mark.parametrize("found", ["1.41.0", "1.42.0", "1.50.1.dev3", "2.0"])
def test_tested_and_newer_versions_are_let_in(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirement, "version", lambda name: found)
    check_requirement(*FLOWER)


@pytest.mark.parametrize("found", ["1.40.0", "1.9", "0.20"])
def test_an_old_one_is_named(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirement, "version", lambda name: found)
    with pytest.raises(ImportError, match=rf"needs flwr 1\.41 or newer, got {found}: pip install 'robagg\[flower\]'"):
        check_requirement(*FLOWER)


def test_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(requirement, "version", missing)
    with pytest.raises(ImportError, match=r"robagg\.flower needs Flower, which is not installed: pip install"):
        check_requirement(*FLOWER)


@pytest.mark.parametrize(("adapter", "package"), [("flower", "flwr"), ("nvflare", "nvflare")])
def test_an_adapter_says_what_to_install(adapter: str, package: str) -> None:
    if package in {found.name for found in distributions()}:
        pytest.skip(f"{package} is here")
    with pytest.raises(ImportError, match=rf"not installed: pip install 'robagg\[{adapter}\]'"):
        __import__(f"robagg.{adapter}")


def test_neither_the_core_nor_the_server_imports_a_framework() -> None:
    code = "import sys, robagg, robagg.server; print({'flwr', 'nvflare'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
