"""Follows a tutorial word by word: saves what it says to save and runs its commands. Draws docs/images/tutorial.png.

python docs/scripts/tutorial.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parents[1]
STEP = re.compile(
    r"[Ss]ave\s+this\s+as\s+`(?P<name>[^`]+)`[^`]*?:\n+```\w+\n(?P<text>.*?)^```|^```sh\n(?P<commands>.*?)^```",
    re.M | re.S,
)
INSTALLS = ("python3 -m venv", "pip install")
"""Commands with these set a machine up, which whoever follows here has done."""


def follow(
    page: Path, folder: Path, *, replace: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Do what a page says, in a folder; what the commands printed. One that fails raises.

    Args:
        page: its commands stand in blocks of `sh`, its files in blocks behind "Save this as `name`:".
        folder: where files are saved and commands run.
        replace: commands, or parts of them, that must be others here.
        environment: of the commands; None: this process's. `robagg` and `python` are those of this Python.
    """
    environment = os.environ if environment is None else environment
    programs = folder / ".programs"
    programs.mkdir(parents=True, exist_ok=True)
    for name, command in (("robagg", "-m robagg "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command}"$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), environment["PATH"]])
    said = []
    for step in STEP.finditer(page.read_text(encoding="utf-8")):
        if step["name"]:
            file = folder / step["name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8")
            continue
        commands = step["commands"]
        if any(install in commands for install in INSTALLS):
            continue
        for old, new in (replace or {}).items():
            commands = commands.replace(old, new)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder,
            env={**environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{commands}\n{done.stdout}")
        said.append(done.stdout)
    return "\n".join(said)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(follow(DOCS / "tutorial-paper.md", folder, replace={"figure.pdf": "tutorial.png"}))
        picture = folder / "tutorial.png"
        (DOCS / "images" / picture.name).write_bytes(picture.read_bytes())
        print((folder / "table.tex").read_text())


if __name__ == "__main__":
    main()
