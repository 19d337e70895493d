"""Rounds in the formats of Prometheus and TensorBoard."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from robagg.server import ClientVerdict, PrometheusExporter, RobustServer, RoundReport, TensorBoardExporter
from server.test_server import MODEL, honest

CLIENTS = (
    ClientVerdict("site-1", 0.5, 1.25, reputation=0.9),
    ClientVerdict('e"v\n\\il', 0.0, None, rejected=True, reason="NaN", reputation=0.2),
)
REPORT = RoundReport("tq(f=1)", CLIENTS, round=7, f=1, metrics={"loss": 0.5, "per class": [1.0, 2.0]})


def test_what_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'robagg\[prometheus\]'"):
        PrometheusExporter()
    with pytest.raises(ImportError, match=r"pip install 'robagg\[tensorboard\]'"):
        TensorBoardExporter(tmp_path)


def test_prometheus_reads_the_rounds(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="needs the extra robagg[prometheus]")
    from prometheus_client.parser import text_string_to_metric_families

    exporter = PrometheusExporter()
    server = RobustServer("tq", f=2, on_round=exporter)
    server.aggregate(1, honest(), model=MODEL)
    assert server.flush()
    exporter(REPORT)
    exporter.write(tmp_path / "robagg.prom")
    assert (tmp_path / "robagg.prom").read_text() == exporter.text()
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(exporter.text())
        for sample in family.samples
    }
    assert samples["robagg_rounds_total", "aggregated"] == 2
    assert samples["robagg_round",] == 7 and samples["robagg_f_in_force",] == 1
    assert math.isnan(samples["robagg_tau",])
    assert samples["robagg_client_reputation", 'e"v\n\\il'] == 0.2
    assert samples["robagg_client_rejected", 'e"v\n\\il'] == 1
    assert samples["robagg_client_distance", "site-1"] == 1.25
    assert samples["robagg_metric", "loss"] == 0.5
    few = PrometheusExporter(per_client=False)
    few(REPORT)
    assert "site-1" not in few.text()


def test_prometheus_is_answered_at_a_port() -> None:
    pytest.importorskip("prometheus_client", reason="needs the extra robagg[prometheus]")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    exporter = PrometheusExporter()
    exporter(REPORT)
    exporter.serve(port)
    assert 'robagg_client_weight{client="site-1"} 0.5' in urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()


@pytest.mark.slow
def test_tensorboard_reads_the_rounds(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra robagg[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    exporter = TensorBoardExporter(tmp_path)
    exporter(REPORT)
    exporter.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    (reputation,) = events.Scalars("reputation/site-1")
    assert (reputation.step, reputation.value) == (7, pytest.approx(0.9))
    assert events.Scalars("metrics/loss")[0].value == 0.5
    assert "robagg/tau" not in events.Tags()["scalars"]
