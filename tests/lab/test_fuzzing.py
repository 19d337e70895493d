"""No line of a store, no sweep file and no text of a rule ends in anything but a sentence."""

from __future__ import annotations

import pytest

from lab.fuzzing import fuzz


@pytest.mark.parametrize("kind", ["lines", "sweeps", "rules"])
def test_nothing_but_a_sentence(kind: str) -> None:
    count = 400
    assert 0 < fuzz(kind, count, seed=0) < count, "some are taken and some are not"
