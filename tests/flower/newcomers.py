"""The app in `newcomer/`, and what docs/flower.md makes of it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "flower.md"

WITH_MOMENTUM = "the model is [2.1"
"""After three steps of 1 with a momentum of 0.5: 0.5 + 0.75 + 0.875 = 2.125. Clients that forget would come to 1.5."""


def copy_newcomer(folder: Path) -> Path:
    shutil.copytree(HERE / "newcomer", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def change(app: Path, *, nodes: int = 5) -> None:
    """Apply the page's first diff to the app's server, line by line, and have it wait for so many nodes."""
    block = re.search(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    gone = [line[1:] for line in block.group(1).splitlines() if line.startswith("-")]
    come = [line[1:] for line in block.group(1).splitlines() if line.startswith("+")]
    assert len(gone) == len(come) == 2
    server = app / "newcomer" / "server_app.py"
    source = server.read_text()
    for old, new in zip(gone, come, strict=True):
        assert source.count(old + "\n") == 1, f"the app has no line {old!r}"
        source = source.replace(old, new)
    server.write_text(source.replace("min_available_nodes=5", f"min_available_nodes={nodes}"))


def add_momentum(app: Path) -> None:
    """Give the app's clients the mod."""
    client = app / "newcomer" / "client_app.py"
    source = client.read_text().replace("ClientApp()", "ClientApp(mods=[worker_momentum(0.5)])")
    client.write_text(f"from robagg.flower import worker_momentum\n{source}")
