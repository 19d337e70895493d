"""What the lab's tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def strip(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the time it took, the time it was and its place in the sweep."""
    return {name: value for name, value in record.items() if name not in ("seconds", "finished", "place")}
