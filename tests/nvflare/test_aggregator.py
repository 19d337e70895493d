"""The aggregator by itself: rounds without an engine, and what it leaves in a job's configuration."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from nvflare.apis.dxo import DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import make_reply
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob

import robagg as ra
from robagg.nvflare import RobustAggregator, RobustFedAvg
from robagg.server import read_journal, verify_journal

Round = Callable[..., Any]
N = 7


def answer(sites: ModuleType, n: int = N, **settings: Any) -> dict[str, Any]:
    model = sites.draw_model()
    return {f"site-{i}": sites.fill(sites.draw_update(model, i), loss=float(i), **settings) for i in range(n)}


def flatten(numbers: Any) -> np.ndarray:
    return np.concatenate([np.asarray(value, np.float64).ravel() for value in numbers.values()])


def start(aggregator: RobustAggregator, folder: Path, *controllers: Any) -> None:
    """Begin a run in this folder."""
    context = FLContext()
    workspace = SimpleNamespace(get_run_dir=lambda job: str(folder))
    context.set_prop(ReservedKey.ENGINE, SimpleNamespace(get_workspace=lambda: workspace))
    workflows = [SimpleNamespace(controller=controller) for controller in controllers]
    context.set_prop(FLContextKey.RUNNER, SimpleNamespace(config=SimpleNamespace(workflows=workflows)))
    context.set_prop(FLContextKey.CURRENT_RUN, "job")
    aggregator.handle_event(EventType.START_RUN, context)


def test_the_value_is_that_of_the_rule(run_round: Round, sites: ModuleType) -> None:
    replies = answer(sites)
    result = run_round(RobustAggregator("tm", f=2), replies)
    wanted = ra.TM(f=2)([sites.draw_update(sites.draw_model(), i) for i in range(N)])
    assert result.params_type == ParamsType.FULL
    for name, value in result.params.items():
        assert isinstance(value, np.ndarray) and value.dtype == np.float32
        assert np.allclose(value, wanted[name], atol=1e-6)
    assert result.metrics["loss"] == pytest.approx(3.0)


def test_sites_are_named_in_verdict_and_journal(run_round: Round, sites: ModuleType, tmp_path: Path) -> None:
    aggregator = RobustAggregator("tq", f=2, journal="rounds.jsonl")
    start(aggregator, tmp_path)
    replies = answer(sites) | {
        "site-1": sites.fill({"w": 1}),
        "site-4": make_reply(ReturnCode.TASK_ABORTED),
        "site-6": None,
    }
    for number in range(2):
        run_round(aggregator, replies, number=number)
    clients = {client.client: client for client in aggregator.last_report.clients}
    assert list(clients) and set(clients) == set(replies)
    assert clients["site-1"].rejected and "lacks" in clients["site-1"].reason
    assert (clients["site-4"].replied, clients["site-4"].reason) == (False, "answers with TASK_ABORTED")
    assert (clients["site-6"].replied, clients["site-6"].reason) == (False, "no reply")
    rounds = read_journal(tmp_path / "rounds.jsonl").rounds
    assert [entry.round for entry in rounds] == [0, 1]
    assert (rounds[0].asked, rounds[0].answered) == (N, N - 2)
    assert verify_journal(tmp_path / "rounds.jsonl") == []


@pytest.mark.parametrize("gathers", [False, True])
def test_an_empty_round_keeps_the_model_and_does_not_raise(gathers: bool, run_round: Round, sites: ModuleType) -> None:
    aggregator = RobustAggregator("tq", f=0.2)
    for replies in ({}, {"site-1": None, "site-2": make_reply(ReturnCode.EXECUTION_EXCEPTION)}):
        result = run_round(aggregator, replies, gathers=gathers)
        assert (result.params_type, result.params) == (ParamsType.DIFF, {})
    assert run_round(aggregator, answer(sites), gathers=gathers).params_type == ParamsType.FULL


def test_differences_are_aggregated_as_differences(run_round: Round, sites: ModuleType) -> None:
    model = sites.draw_model()
    changes = [{name: value - model[name] for name, value in sites.draw_update(model, i).items()} for i in range(N)]
    replies = {f"site-{i}": sites.fill(change, kind=DataKind.WEIGHT_DIFF) for i, change in enumerate(changes)}
    replies["site-0"] = sites.fill(sites.draw_update(model, 0))  # a whole model among them
    aggregator = RobustAggregator("rfa", f=2)
    result = run_round(aggregator, replies)
    assert result.params_type == ParamsType.DIFF
    assert np.allclose(flatten(result.params), flatten(ra.RFA(f=2)(changes[1:])), atol=1e-6)
    assert [client.reason for client in aggregator.last_report.rejected] == [
        "sends params of the type FULL where DIFF is expected"
    ]


def test_a_model_of_tensors_stays_one(run_round: Round, sites: ModuleType) -> None:
    model = {name: torch.from_numpy(value) for name, value in sites.draw_model().items()}
    result = run_round(RobustAggregator("cm", f=2), answer(sites), model=model)
    assert all(isinstance(value, torch.Tensor) for value in result.params.values())


def test_a_site_has_one_voice_and_it_is_its_own(run_round: Round, sites: ModuleType) -> None:
    aggregator = RobustAggregator("tq", f=2)
    replies = answer(sites) | {
        "site-0": sites.speak_for_another(sites.draw_model(), sites.draw_update(sites.draw_model(), 0))
    }
    run_round(aggregator, replies)
    assert [client.client for client in aggregator.last_report.rejected] == ["site-0"]
    assert aggregator.last_report.answered == N


def test_what_is_for_an_earlier_round_does_not_count(run_round: Round, sites: ModuleType) -> None:
    aggregator = RobustAggregator("tq", f=2)
    run_round(aggregator, answer(sites), gathers=True)
    replies = answer(sites)
    replies["site-3"].add_cookie(AppConstants.CONTRIBUTION_ROUND, 0)
    run_round(aggregator, replies, number=1, gathers=True)
    (lost,) = [client for client in aggregator.last_report.clients if not client.replied]
    assert (lost.client, lost.reason) == ("site-3", "no reply")


def test_what_cannot_be_used_is_let_go_at_once(run_round: Round, sites: ModuleType) -> None:
    class Arrays(dict):  # type: ignore[type-arg]
        """One that a weak reference can point to."""

    aggregator = RobustAggregator("tq", f=2)
    run_round(aggregator, {"site-0": None})
    aggregator._note_asked("site-1", sites.fill(sites.draw_model()))
    large = np.zeros(1000, np.float32)
    gone = weakref.ref(large)
    model = FLModel(params=Arrays({"layer.bias": large}), meta={"client_name": "site-1"})
    aggregator.accept_model(model)
    del model, large
    assert gone() is None


def test_weights_follow_the_steps_that_sites_claim(run_round: Round, sites: ModuleType) -> None:
    model = sites.draw_model()
    updates = [sites.draw_update(model, i) for i in range(N)]
    replies = {f"site-{i}": sites.fill(update, steps=1 + i) for i, update in enumerate(updates)}
    result = run_round(RobustAggregator("mean", weighted=True, max_weight=0.9), replies)
    wanted = np.average([flatten(update) for update in updates], axis=0, weights=np.arange(1, N + 1))
    assert np.allclose(flatten(result.params), wanted, atol=1e-6)


def test_a_job_holds_every_argument(tmp_path: Path) -> None:
    settings = {
        "weighted": True, "max_weight": 0.2, "min_valid_replies": 4, "allow_unprotected": True, "partial": True,
        "max_skipped": 9, "reputation": "quarantine", "gram": False, "digests": True, "state": "server.pt",
        "aside": ["*running_mean"], "warn_after": (2, 4), "journal": "rounds.jsonl", "max_bytes": 10_000,
    }  # fmt: skip
    job = FedJob(name="job", min_clients=3)
    job.set_app_packages(["robagg"])
    aggregator = RobustAggregator(ra.NNM(f=2) >> ra.TQ(f=2, iterations=7), **settings)
    job.to_server(RobustFedAvg(num_clients=3, num_rounds=9, timeout=77, aggregator=aggregator))
    job.export_job(str(tmp_path))
    (file,) = tmp_path.rglob("config_fed_server.json")
    (workflow,) = json.loads(file.read_text())["workflows"]
    nested = workflow["args"].pop("aggregator")
    assert workflow["path"] == "robagg.nvflare.controller.RobustFedAvg"
    assert workflow["args"] | {"timeout": 77, "num_rounds": 9, "ignore_result_error": True} == workflow["args"]
    assert nested["path"] == "robagg.nvflare.aggregator.RobustAggregator"
    again = RobustAggregator(**nested["args"])
    assert {name: getattr(again, name) for name in settings} == settings | {"warn_after": [2, 4]}
    assert ra.parse(again.rule) == ra.NNM(f=2) >> ra.TQ(f=2, iterations=7)


@dataclass(frozen=True)
class Alike(ra.TQ):
    """TQ for clients that all count alike."""

    takes_weights: ClassVar[bool] = False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rule": "no-rule"}, "no-rule"),
        ({"rule": ra.TQ(f=2), "f": 3}, "f"),
        ({"rule": Alike(), "weighted": True}, "takes_weights"),
        ({"rule": "tq", "warn_after": (5, 3)}, "warn_after"),
    ],
)
def test_a_wrong_argument_shows_where_the_job_is_written(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RobustAggregator(**arguments)


def test_a_controller_that_ends_with_the_first_error_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        start(RobustAggregator("tq", f=2), tmp_path, RobustFedAvg(num_clients=3))
        assert "RobustFedAvg" not in caplog.text
        start(RobustAggregator("tq", f=2), tmp_path, FedAvg(num_clients=3))
    assert "use robagg.nvflare.RobustFedAvg in place of FedAvg" in caplog.text


def test_a_part_of_the_model_is_aggregated(run_round: Round, sites: ModuleType) -> None:
    model = sites.draw_model()
    parts = [{"head.weight": sites.draw_update(model, i)["head.weight"]} for i in range(N)]
    result = run_round(RobustAggregator("cm", f=2), {f"site-{i}": sites.fill(part) for i, part in enumerate(parts)})
    assert np.allclose(result.params["head.weight"], ra.CM(f=2)(parts)["head.weight"])
    assert np.array_equal(result.params["layer.bias"], model["layer.bias"])


def test_many_skipped_rounds_end_the_run_with_an_error(run_round: Round) -> None:
    aggregator = RobustAggregator("tq", f=2, max_skipped=2)
    run_round(aggregator, {"site-1": None})
    with pytest.raises(RuntimeError, match="the last 2 rounds were skipped"):
        run_round(aggregator, {"site-1": None}, number=1)


@pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
def test_the_state_has_the_whole_model_and_only_one_controller_goes_on(
    kind: str, run_round: Round, sites: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = sites.draw_model()
    sent = {name: value * (kind == DataKind.WEIGHTS) for name, value in model.items()}  # differences start from zeros
    replies = {f"site-{i}": sites.fill(sites.draw_update(sent, i), kind=kind) for i in range(N)}
    first = RobustAggregator("cm", f=2, state=tmp_path / "server.pt")
    start(first, tmp_path, RobustFedAvg(num_clients=N))
    value = run_round(first, replies).params
    wanted = value if kind == DataKind.WEIGHTS else {name: model[name] + change for name, change in value.items()}
    second = RobustAggregator("cm", f=2, state=tmp_path / "server.pt")
    start(second, tmp_path, RobustFedAvg(num_clients=N))
    assert (second.server.run, second.server.round) == (first.server.run, 0)
    assert all(np.array_equal(second.server.model[name], array) for name, array in wanted.items())
    assert "starts from the job's own" not in caplog.text
    start(second, tmp_path, FedAvg(num_clients=N, ignore_result_error=True))
    assert second.server.run != first.server.run
    assert "the run starts from the job's own" in caplog.text
