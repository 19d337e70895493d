"""Stores of made-up records, so that tables and figures are tested without training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from robagg.lab.lines import Record
from robagg.lab.run import RESULTS_VERSION
from robagg.lab.store import Store
from robagg.paper import Experiment, Place, Plan

Fill = Callable[..., Path]


def make_record(place: Place, accuracy: float | None, diverged: int | None = None) -> Record:
    run = place.run
    rounds = run.effective.rounds
    return {
        "robagg": RESULTS_VERSION,
        "key": run.key,
        "status": "ok",
        "finished": "2030-01-01T00:00:00+00:00",
        "spec": run.describe(),
        "accuracy": accuracy,
        "diverged": diverged,
        "done": rounds,
        "curve": [(rounds // 2, (accuracy or 0.0) / 2), (rounds, accuracy or 0.0)],
        "notes": [],
        "plugins": {},
        "trace": {},
        "seconds": 1.0,
        "environment": {},
    }


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Write a record for every place of an experiment, with the accuracy that a function of the place gives."""

    def write(experiment: Experiment, accuracy: Callable[[Place], float | None], plan: Plan | None = None) -> Path:
        path = tmp_path / f"{experiment.name}.jsonl"
        with Store(path) as store:
            for place in experiment.lay(plan or Plan()):
                value = accuracy(place)
                if value is not None:
                    store.append(make_record(place, value))
        return path

    return write
