"""Everything a site may send, in NVFlare's simulator: nothing moves the model, ends the run or stalls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from robagg.nvflare import RobustAggregator, RobustFedAvg
from robagg.server import RoundReport, read_journal, verify_journal

N = 11


def flatten(numbers: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.asarray(value, np.float64).ravel() for value in numbers.values()])


class Matrix:
    """What came of a run in which the first site sends every case, a round each, and nothing in the last."""

    def __init__(self, sites: ModuleType, simulate: Callable[..., None], folder: Path) -> None:
        self.names = [*sites.CASES, "silence"]
        aggregator = RobustAggregator("tq", f=2, journal=str(folder / "rounds.jsonl"))
        settings: dict[str, Any] = {
            "num_clients": N,
            "num_rounds": len(self.names),
            "timeout": 60,
            "task_check_period": 0.1,
        }
        simulate(folder, N, RobustFedAvg(aggregator=aggregator, **settings))
        self.journal = folder / "rounds.jsonl"
        rounds = read_journal(self.journal).rounds
        self.rounds: dict[str, RoundReport] = dict(zip(self.names, rounds, strict=True))
        files = [*(folder / f"{number}.npz" for number in range(1, len(self.names))), folder / "last.npz"]
        self.models = {name: dict(np.load(file)) for name, file in zip(self.names, files, strict=True)}

    def find_first(self, name: str):  # type: ignore[no-untyped-def]
        """The verdict on the hostile site in a case's round."""
        return next(client for client in self.rounds[name].clients if client.client == "site-1")


@pytest.fixture(scope="module")
def matrix(sites: ModuleType, simulate: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(sites, simulate, tmp_path_factory.mktemp("matrix"))


def test_nothing_a_site_sends_moves_the_model_or_ends_the_run(matrix: Matrix, sites: ModuleType) -> None:
    model = sites.draw_model()
    honest = [flatten(sites.draw_update(model, number)) for number in range(2, N + 1)]
    mean = np.mean(honest, axis=0)
    spread = max(np.linalg.norm(update - mean) for update in honest)
    for name in matrix.names:
        result = matrix.models[name]
        assert {key: (value.shape, value.dtype) for key, value in result.items()} == {
            key: (value.shape, value.dtype) for key, value in model.items()
        }, name
        assert np.linalg.norm(flatten(result) - mean) < 1.5 * spread, name
        assert 0 <= matrix.rounds[name].metrics["loss"] <= N, name
        assert not matrix.rounds[name].skipped, name


def test_a_broken_reply_is_dropped_with_a_reason(matrix: Matrix, sites: ModuleType) -> None:
    for name in sites.BROKEN:
        verdict = matrix.find_first(name)
        assert verdict.replied and verdict.rejected, name
        assert 3 < len(verdict.reason) < 300 and verdict.reason.isprintable(), name


def test_an_error_or_silence_lowers_n(matrix: Matrix, sites: ModuleType) -> None:
    for name in [*sites.LOST, "silence"]:
        verdict = matrix.find_first(name)
        assert not verdict.replied and not verdict.rejected, name
        assert verdict.reason.isprintable() and verdict.reason, name
        assert (matrix.rounds[name].asked, matrix.rounds[name].answered) == (N, N - 1), name


def test_no_honest_site_is_named_in_another_ones_place(matrix: Matrix, sites: ModuleType) -> None:
    """And who is far off is named, whatever it says its name is."""
    for name in ["ipm", "huge", "another's-name", "another-round"]:
        assert matrix.find_first(name).rejected, name
    for name in sites.BROKEN:
        assert {client.client for client in matrix.rounds[name].clients} == {f"site-{i + 1}" for i in range(N)}


def test_the_journal_of_the_run_is_whole(matrix: Matrix) -> None:
    assert [report.round for report in matrix.rounds.values()] == list(range(len(matrix.names)))
    assert verify_journal(matrix.journal) == []
