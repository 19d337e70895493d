"""What an app of Flower's old API is answered: one sentence on what to change."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.server import ServerConfig
from flwr.server.client_manager import SimpleClientManager
from flwr.server.server import Server
from flwr.server.strategy import FedAdam, FedAvg

from robagg.flower import RobustStrategy


def test_server_fn_is_answered_with_what_to_write_instead() -> None:
    server = Server(client_manager=SimpleClientManager(), strategy=RobustStrategy("tq"))
    with pytest.raises(
        TypeError, match=r"in place of server_fn write @app.main\(\) and call strategy.start\(grid=grid"
    ):
        server.fit(num_rounds=ServerConfig().num_rounds, timeout=None)


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ({"fraction_fit": 0.5}, "fraction_train="),
        ({"min_fit_clients": 5}, "min_train_nodes="),
        ({"min_available_clients": 5}, "min_available_nodes="),
        ({"evaluate_fn": print}, r"evaluate_fn= of start\(\)"),
        ({"initial_parameters": None}, r"initial_arrays= of start\(\)"),
    ],
)
def test_arguments_of_the_old_fedavg_are_answered_with_the_new_ones(argument: dict[str, object], instead: str) -> None:
    with pytest.raises(TypeError, match=f"is of Flower's old API; here it is {instead}"):
        RobustStrategy("tq", **argument)


@pytest.mark.parametrize("old", [FedAvg, FedAdam])
def test_an_old_strategy_inside_is_answered_with_where_to_import_it_from(old: type) -> None:
    inside = old(initial_parameters=None) if old is FedAvg else object.__new__(old)
    with pytest.raises(TypeError, match=f"import {old.__name__} from flwr.serverapp.strategy"):
        RobustStrategy("tq", around=inside)
