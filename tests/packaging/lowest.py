"""The lowest versions that pyproject.toml allows, as requirements for pip; `make test-lowest` installs them.

python tests/packaging/lowest.py > requirements.txt
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
TOOLS = {"mypy", "ruff", "robagg"}
"""What `dev` names and tests do not need, and the package itself."""


def list_lowest() -> Iterator[str]:
    """Each requirement of the package, of the lab and of the tests, at the lowest version of its range."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for requirement in (*project["dependencies"], *extras["lab"], *extras["dev"]):
        name = re.split(r"[\[<>=!~;]", requirement)[0]
        if name not in TOOLS:
            lowest = re.search(r">=([0-9.]+)", requirement)
            assert lowest is not None, f"{requirement} must have a lowest version"
            yield f"{name}=={lowest[1]}"


if __name__ == "__main__":
    print("\n".join(list_lowest()))
