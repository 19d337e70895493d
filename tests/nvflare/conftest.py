"""Without NVFlare none of this is collected; `make test-nvflare` has it, in an environment of its own."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
# Not by `find_spec`, which finds this folder: it has the package's name.
INSTALLED = "nvflare" in {found.name for found in distributions()}
collect_ignore_glob = ["simulator.py", "sites.py", "learners.py"] if INSTALLED else ["*.py"]


@pytest.fixture(scope="session")
def _import_here() -> Iterator[None]:
    """What runs at the sites is imported as NVFlare imports it there."""
    sys.path.insert(0, str(HERE))
    yield
    sys.path.remove(str(HERE))


@pytest.fixture(scope="session")
def sites(_import_here: None) -> ModuleType:
    return import_module("sites")


@pytest.fixture(scope="session")
def learners(_import_here: None) -> ModuleType:
    return import_module("learners")


@pytest.fixture(scope="session")
def simulator(_import_here: None) -> ModuleType:
    return import_module("simulator")


@pytest.fixture(scope="session")
def add_scripts() -> Callable[..., None]:
    """Adds files below `tests` to a job, at the server and at the sites, which import them by these names."""

    def add(job: Any, *names: str) -> None:
        for name in names:
            job.to_clients(str(HERE.parent / name))
            job.to_server(str(HERE.parent / name))

    return add


@pytest.fixture(scope="session")
def simulate(sites: ModuleType, simulator: ModuleType, add_scripts: Callable[..., None]) -> Callable[..., None]:
    """Runs a job of `Site`s, of which the first is hostile, in the simulator."""
    from nvflare.job_config.api import FedJob

    def run(folder: Path, n: int, controller: Any, **components: Any) -> None:
        job = FedJob(name="job", min_clients=n)
        job.set_app_packages(["robagg"])
        job.to_server({"server": {"task_request_interval": 0.2}})  # seconds, as other times in NVFlare
        job.to_server(controller)
        for name, component in {"persistor": sites.Start(str(folder), n), **components}.items():
            job.to_server(component, id=name)
        job.to_clients(sites.Site(str(folder)))
        add_scripts(job, "server/hostile.py")
        simulator.Simulator.of_job(job, folder, n).finish()

    return run


@pytest.fixture
def run_round(sites: ModuleType) -> Callable[..., Any]:
    """A round without an engine: the events and calls that NVFlare's FedAvg makes."""
    from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ReturnCode
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable
    from nvflare.app_common.abstract.fl_model import FLModel
    from nvflare.app_common.app_constant import AppConstants
    from nvflare.app_common.app_event_type import AppEventType
    from nvflare.app_common.utils.fl_model_utils import FLModelUtils

    def meet(site: str, reply: Shareable | None = None) -> FLContext:
        peer, context = FLContext(), FLContext()
        peer.set_prop(ReservedKey.IDENTITY_NAME, site, private=False)
        peer.set_prop(FLContextKey.SHAREABLE, reply)
        context.set_peer_context(peer)
        return context

    def run(
        aggregator: Any,
        replies: dict[str, Shareable | None],
        *,
        model: Any = None,
        number: int = 0,
        gathers: bool = False,
    ) -> FLModel:
        """One round with these replies; None is silence. `gathers`: as ScatterAndGather does it."""
        sent = FLModel(params=sites.draw_model() if model is None else model, current_round=number)
        task = FLModelUtils.to_shareable(sent)
        if not gathers:
            aggregator.reset_stats()
        for site in replies:
            context = meet(site)
            context.set_prop(AppConstants.TRAIN_SHAREABLE, task)
            aggregator.handle_event(AppEventType.BEFORE_TRAIN_TASK, context)
        for site, reply in replies.items():
            if reply is None:
                continue
            reply = copy.deepcopy(reply)
            context = meet(site, reply)
            reply.add_cookie(AppConstants.CONTRIBUTION_ROUND, reply.get_cookie(AppConstants.CONTRIBUTION_ROUND, number))
            if reply.get_return_code(ReturnCode.OK) == ReturnCode.OK:
                if gathers:
                    aggregator.accept(reply, context)
                else:
                    try:
                        received = FLModelUtils.from_shareable(reply)
                        received.meta["client_name"] = site
                    except Exception:
                        received = None
                    if received is not None and received.params:
                        aggregator.accept_model(received)
            aggregator.handle_event(AppEventType.AFTER_CONTRIBUTION_ACCEPT, context)
        result = aggregator.aggregate_model()
        if gathers:
            aggregator.reset(FLContext())
        return result

    return run
