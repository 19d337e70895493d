"""A small task in a user's own file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.sharing import EXAMPLES
from robagg.lab.plugins import forget, load_plugin


@pytest.fixture
def blobs() -> Iterator[str]:
    """A task that trains in half a second, from a plugin file."""
    path = EXAMPLES / "plugins" / "my_task.py"
    load_plugin(path)
    yield str(path)
    forget(path)
