"""Who is asked in a round: nodes that are there now, neither fewer than came nor more than stayed."""

from __future__ import annotations

import logging
import time
from typing import Any

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg


class Present:
    """A grid whose list of nodes stands still while a strategy samples from it."""

    def __init__(self, grid: Grid, nodes: list[int]) -> None:
        self._grid = grid
        self._nodes = nodes

    def get_node_ids(self) -> list[int]:
        return self._nodes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)


def wait_for_nodes(grid: Grid, wanted: int) -> Present:
    """The grid as it is when that many nodes are connected."""
    while len(nodes := list(grid.get_node_ids())) < wanted:
        logging.getLogger("flwr").info("Waiting for nodes to connect: %d of %d.", len(nodes), wanted)
        time.sleep(1)
    return Present(grid, nodes)


def ask_present(strategy: FedAvg, configure: Any, least: int, *arguments: Any) -> list[Message]:
    """A strategy's messages to nodes that are there; the last argument is a grid that stands still.

    FedAvg counts nodes first and then waits for more: its first round goes without those that it waited for. And it
    waits again in every round, for ever where a node is gone for good. So while it samples it is asked to wait for no
    more than `least`.
    """
    own = strategy.min_available_nodes
    strategy.min_available_nodes = least
    try:
        return list(configure(*arguments))
    finally:
        strategy.min_available_nodes = own
