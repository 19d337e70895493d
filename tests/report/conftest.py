"""What the tests of both pages share."""

from __future__ import annotations

import shutil
import subprocess
import tarfile

import pytest


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of axe-core, which looks for what a screen reader or a keyboard cannot use."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so axe-core cannot be had")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(["npm", "pack", "axe-core"], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip("axe-core cannot be had from the registry")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        program = archive.extractfile("package/axe.min.js")
        assert program is not None
        return program.read().decode()
