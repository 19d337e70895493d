"""Rounds for the tools that watch servers: Prometheus and TensorBoard. Give one as `on_round=`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from robagg.server.report import ClientVerdict, RoundReport


class PrometheusExporter:
    """Rounds as Prometheus metrics; needs the extra `robagg[prometheus]`.

    Args:
        registry: that of `prometheus_client` to register with; None makes one of its own.
        per_client: whether each client has its own weight, distance and reputation: as many series as clients, so
            not for thousands of them.

    Example:
        server = RobustServer("tq", f=2, on_round=(exporter := PrometheusExporter()))
        exporter.serve(9464)
    """

    def __init__(self, registry: Any = None, *, per_client: bool = True) -> None:
        self._client = _import("prometheus_client", "prometheus")
        self.registry = self._client.CollectorRegistry() if registry is None else registry
        self.per_client = per_client
        gauge, counter = self._client.Gauge, self._client.Counter
        to = {"registry": self.registry}
        self._rounds = counter("robagg_rounds", "Rounds, by what came of them.", ["outcome"], **to)
        self._rejections = counter("robagg_rejections", "Replies that were rejected.", **to)
        self._round = {
            name: gauge(f"robagg_{name}", text, **to)
            for name, text in {
                "round": "The last round.",
                "asked": "Clients that were asked.",
                "replies": "Clients that replied.",
                "rejected": "Replies that were rejected.",
                "f_in_force": "How many Byzantine clients the round tolerated; NaN where there was no value.",
                "tau": "The rule's radius; NaN where there was none.",
            }.items()
        }
        self._metrics = gauge("robagg_metric", "A metric of the clients, as a trimmed mean.", ["name"], **to)
        self._clients = {
            name: gauge(f"robagg_client_{name}", text, ["client"], **to)
            for name, text in {
                "weight": "A client's share in the value.",
                "distance": "A client's distance from the value; NaN where there is none.",
                "rejected": "Whether a client's reply was rejected.",
                "reputation": "A client's reputation.",
            }.items()
        }

    def __call__(self, report: RoundReport) -> None:
        """Take up a round."""
        outcome = "skipped" if report.skipped else "observed" if report.observed else "aggregated"
        self._rounds.labels(outcome=outcome).inc()
        self._rejections.inc(len(report.rejected))
        for name, value in _list_numbers(report).items():
            self._round[name].set(float("nan") if value is None else value)
        for name, value in report.metrics.items():
            if not isinstance(value, list):
                self._metrics.labels(name=name).set(value)
        for client in report.clients if self.per_client else ():
            for name, value in _list_client_numbers(client).items():
                self._clients[name].labels(client=client.client).set(float("nan") if value is None else value)

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        return bytes(self._client.generate_latest(self.registry)).decode()

    def write(self, path: str | Path) -> None:
        """The same to a file, at once, as the node exporter's textfile collector wants it."""
        self._client.write_to_textfile(str(path), self.registry)

    def serve(self, port: int, address: str = "127.0.0.1") -> None:
        """Answer Prometheus at this port, in a thread of its own."""
        self._client.start_http_server(port, address, self.registry)


class TensorBoardExporter:
    """Rounds as TensorBoard scalars; needs the extra `robagg[tensorboard]`.

    Args:
        folder: where the event files go.
        per_client: whether each client has its own curves.
    """

    def __init__(self, folder: str | Path, *, per_client: bool = True) -> None:
        _import("tensorboard", "tensorboard")
        self._writer: Any = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder))
        self.per_client = per_client

    def __call__(self, report: RoundReport) -> None:
        """Take up a round."""
        numbers: dict[str, Any] = {f"robagg/{name}": value for name, value in _list_numbers(report).items()}
        numbers |= {f"metrics/{name}": value for name, value in report.metrics.items() if not isinstance(value, list)}
        for client in report.clients if self.per_client else ():
            numbers |= {f"{name}/{client.client}": value for name, value in _list_client_numbers(client).items()}
        for name, value in numbers.items():
            if value is not None:
                self._writer.add_scalar(name, value, report.round)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


def _list_numbers(report: RoundReport) -> dict[str, float | None]:
    return {
        "round": report.round,
        "asked": report.asked,
        "replies": report.answered,
        "rejected": len(report.rejected),
        "f_in_force": report.f,
        "tau": report.tau,
    }


def _list_client_numbers(client: ClientVerdict) -> dict[str, float | None]:
    return {
        "weight": client.weight,
        "distance": client.distance,
        "rejected": float(client.rejected),
        "reputation": client.reputation,
    }


def _import(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{module} is not installed: pip install 'robagg[{extra}]'") from None
