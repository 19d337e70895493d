"""Runs the example app in Flower's simulation engine, as often as told, and prints what came of it.

    python simulate.py '[{"attacks": "nan", "num-server-rounds": 3}, ...]'

Everything is a setting of the run but "client_resources", which goes to the engine.
A process of its own: the engine brings up Ray, whose workers must find this code and the example's.
"""

from __future__ import annotations

import json
import logging
import sys
import tomllib
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"
NODES = 10


def run(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation
    from robust_digits import client_app, server_app

    from robagg.server import SkippedRoundsError

    # Flower hands these on to Ray as they are. Without restarts a client that ends its process ends it for all nodes;
    # without a second try a message that meets a process just being started is lost.
    ray = {"max_restarts": -1, "max_task_retries": 1}
    resources = {"num_cpus": 1, "num_gpus": 0.0} | ray | settings.get("client_resources", {})
    settings = {name: value for name, value in settings.items() if name != "client_resources"}
    config = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"] | settings
    config |= {"log-file": str(folder / "verdicts.jsonl"), "min-nodes": NODES}
    told: dict[str, Any] = {}

    def configure(context: Context) -> Context:
        """The same context with the run's settings, which this way of starting a run has no argument for."""
        return Context(context.run_id, context.node_id, context.node_config, context.state, config)

    def call_configured(message: Message, context: Context, call_next):  # type: ignore[no-untyped-def]
        return call_next(message, configure(context))

    client = ClientApp(mods=[call_configured])
    client.train(mods=[client_app.add_momentum])(client_app.train_here)
    client.evaluate()(client_app.evaluate_here)
    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            told["accuracy"] = server_app.train_all(grid, configure(context))
        except SkippedRoundsError as error:
            told["error"] = str(error)

    run_simulation(
        server,
        client,
        num_supernodes=NODES,
        backend_config={
            "client_resources": resources,
            "init_args": {"num_cpus": 2, "include_dashboard": False},
        },
    )
    verdicts = folder / "verdicts.jsonl"
    told["rounds"] = [json.loads(line) for line in verdicts.read_text().splitlines()] if verdicts.exists() else []
    verdicts.unlink(missing_ok=True)
    return told


if __name__ == "__main__":
    import tempfile

    logging.getLogger("flwr").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        results = [run(settings, Path(name)) for settings in json.loads(sys.argv[1])]
    print("RESULTS " + json.dumps(results))
