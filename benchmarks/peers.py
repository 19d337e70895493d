"""Other libraries to measure against, installed beside this script so that they touch nobody's environment."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / ".peers"
PACKAGES = ("byzfl==0.0.11", "byzpy==0.1.4")


def install() -> bool:
    """Install the peers without their dependencies; False where they cannot be had."""
    if not (FOLDER / "byzfl").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(FOLDER), *PACKAGES]
        if subprocess.run(command, check=False).returncode != 0:
            print("the peers could not be installed (no network?): their columns stay empty", file=sys.stderr)
            return False
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return True


def load_byzfl() -> Any | None:
    """ByzFL, or None. Only its own benchmark wants torchvision, so a stand-in takes that module's place."""
    if not install():
        return None
    sys.modules.setdefault("byzfl.benchmark", types.ModuleType("byzfl.benchmark"))
    import byzfl

    return byzfl
