"""Profiles over made-up accuracies, so that the search is tested without training."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from robagg.lab import Run
from robagg.lab.lines import Record
from robagg.lab.run import RESULTS_VERSION
from robagg.profile import Profile, propose

Truth = Callable[[Run], float | None]
Complete = Callable[[Profile, Truth], tuple[dict[str, Record], list[list[Run]]]]


def make_record(run: Run, accuracy: float | None) -> Record:
    """None: the run failed; below 0: it diverged."""
    record: Record = {"robagg": RESULTS_VERSION, "key": run.key, "spec": run.describe(), "diverged": None}
    if accuracy is None:
        return record | {"status": "failed", "error": "made up", "accuracy": None}
    gone = accuracy < 0
    return record | {"status": "ok", "accuracy": None if gone else accuracy, "diverged": 3 if gone else None}


@pytest.fixture
def complete() -> Complete:
    """Do all that a profile asks for, step by step: the records, and the runs of each step."""

    def do(profile: Profile, truth: Truth) -> tuple[dict[str, Record], list[list[Run]]]:
        records: dict[str, Record] = {}
        steps: list[list[Run]] = []
        while runs := propose(profile, records):
            assert len(steps) < 60, "the search has no end"
            assert not any(run.key in records for run in runs)
            steps.append(runs)
            records |= {run.key: make_record(run, truth(run)) for run in runs}
        return records, steps

    return do
