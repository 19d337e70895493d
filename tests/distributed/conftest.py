"""Four ranks, for all tests of this folder that one process runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from distributed.pool import Pool


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(4, tmp_path_factory.mktemp("ranks"))
    yield made
    made.close()
