"""What the tests of all pages share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, where there is one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of axe-core, which looks for what a screen reader or a keyboard cannot use."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so axe-core cannot be had")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(["npm", "pack", "axe-core"], cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip("axe-core cannot be had from the registry")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        program = archive.extractfile("package/axe.min.js")
        assert program is not None
        return program.read().decode()
