"""What a run is judged by: numbers that its record holds, or that follow from it."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from robagg._core.checks import is_number
from robagg._core.registry import unknown

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A number of a run."""

    name: str
    words: str
    """What it is, in a sentence."""
    read: Callable[[Record], float | None]
    """From a flat record; None where the run has none."""
    lower: bool = False
    """Whether less is better."""
    percent: bool = True
    lost: float | None = None
    """What a run that diverged counts as, where some run under its attack has the measure; None: as what its record
    says, since the measure is not of its model."""


def detect(record: Record) -> tuple[float | None, float | None]:
    """Precision and recall, in percent, of a run's verdicts as a detector of Byzantine clients.

    Found is a client that the rule left out of a round: rejected, not chosen, or without weight. Counted are the rounds
    that the trace keeps. Under no attack nobody is there to be found.

    >>> trace = {"byzantine_kept": [1, 0], "honest_dropped": [0, 1], "weights": None}
    >>> detect({"trace": trace, "n": 4, "f": 2, "attack": "ipm"})
    (75.0, 75.0)
    """
    try:
        trace, n, f = record["trace"], record["n"], record["f"]
        kept, wrong = sum(trace["byzantine_kept"]), sum(trace["honest_dropped"])
        there = f * len(trace["byzantine_kept"])
        if trace["weights"]:
            levels = np.frombuffer(zlib.decompress(base64.b64decode(trace["weights"])), np.uint8).reshape(-1, n)
            there -= int((levels[:, n - f :] == 255).sum())  # not asked
    except (KeyError, TypeError, ValueError, zlib.error):
        return None, None
    if record.get("attack") == "none":
        return None, None
    found = there - kept
    return 100 * found / (found + wrong) if found + wrong else None, 100 * found / there if there else None


def _read_accuracy(record: Record) -> float | None:
    accuracy: float | None = record.get("accuracy")
    return accuracy


def _read_metric(record: Record, name: str) -> float | None:
    """A number of those that a run measures after its last round; older records have none."""
    metrics = record.get("metrics")
    value = metrics.get(name) if isinstance(metrics, dict) else None
    return float(value) if is_number(value) and math.isfinite(value) else None


def _read_worst_class(record: Record) -> float | None:
    metrics = record.get("metrics")
    values = metrics.get("class_accuracy") if isinstance(metrics, dict) else None
    return min(filter(is_number, values), default=None) if isinstance(values, list) else None


MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            "accuracy",
            "Percent of the test set that the model gets right after the last round.",
            _read_accuracy,
            lost=0.0,
        ),
        Measure(
            "worst_client",
            "The lowest accuracy over the honest clients, each on its own data.",
            partial(_read_metric, name="worst_client"),
            lost=0.0,
        ),
        Measure("worst_class", "The lowest accuracy over the classes.", _read_worst_class, lost=0.0),
        Measure(
            "attack_success",
            "Percent of the samples as the attackers show them to which the model gives the label that they want.",
            partial(_read_metric, name="attack_success"),
            lower=True,
            lost=100.0,
        ),
        Measure(
            "loss",
            "The loss on the test set in the end.",
            partial(_read_metric, name="loss"),
            lower=True,
            percent=False,
        ),
        Measure(
            "precision",
            "Detection precision: of the clients that the rule left out of a round, the percentage that was Byzantine.",
            lambda record: detect(record)[0],
        ),
        Measure(
            "recall",
            "Detection recall: of the Byzantine clients of a round, the percentage that the rule left out.",
            lambda record: detect(record)[1],
        ),
    )
}
"""Each by its name; the accuracy comes first."""


def find_measure(name: str) -> Measure:
    """The measure of that name; of others a task's own metric, of which more is better."""
    own = Measure(name, "A metric of the task's own.", partial(_read_metric, name=name), percent=False)
    return MEASURES.get(name, own)


def list_measures(records: Iterable[Record]) -> list[Measure]:
    """Those that some of the records have a number of, the accuracy always."""
    records = list(records)
    own = {name for record in records for name in _name_metrics(record)}
    every = [*MEASURES.values(), *(find_measure(name) for name in sorted(own - {*MEASURES, "class_accuracy"}))]
    return [m for m in every if m.name == "accuracy" or any(read_measure(record, m) is not None for record in records)]


def _name_metrics(record: Record) -> Iterable[str]:
    metrics = record.get("metrics")
    return (name for name in metrics if isinstance(name, str)) if isinstance(metrics, dict) else ()


def read_measure(record: Record, measure: Measure) -> float | None:
    """Its number of a flat record, be it that the record has lost the trace from which `take_detection` has read it."""
    taken = record.get("detection")
    return taken[measure.name] if taken and measure.name in taken else measure.read(record)


def take_detection(record: dict[str, Any]) -> None:
    """Put what follows from a record's trace into the record, which can do without its trace then."""
    spec = record.get("spec")
    found = detect({**(spec if isinstance(spec, dict) else {}), **record})
    record["detection"] = dict(zip(("precision", "recall"), found, strict=True))


def split_measures(records: Sequence[Record], names: Sequence[str]) -> list[Record]:
    """A record for each measure of each run, with the measure's name and what the run counts as in it as `value`."""
    known = [measure.name for measure in list_measures(records)]
    for name in names:
        if name not in (*known, *MEASURES):
            raise ValueError(unknown("measure", name, dict.fromkeys((*MEASURES, *known)), (*MEASURES, *known)))
    measures = [find_measure(name) for name in names]
    rows = [[read_measure(record, measure) for measure in measures] for record in records]
    # An attack that wants no label has no success, though a run under it diverged.
    measured = {
        (measure.name, record.get("attack"))
        for record, row in zip(records, rows, strict=True)
        for measure, value in zip(measures, row, strict=True)
        if value is not None
    }
    found: list[Record] = []
    for record, row in zip(records, rows, strict=True):
        for measure, value in zip(measures, row, strict=True):
            lost = record.get("diverged") is not None and (measure.name, record.get("attack")) in measured
            counted = measure.lost if lost and measure.lost is not None else value
            found.append({**record, "measure": measure.name, "value": counted})
    return found
