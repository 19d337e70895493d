"""What the paper's experiments are made of: its rules, attacks and pre-aggregators, in the order of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Change = Mapping[str, Any]
"""Fields of a run: rule, mixer, attack, task, n, f, rho, settings."""
Axis = Mapping[str, Change]
"""What varies, by the label that people read."""

MCA_SIGMA = 5.0
"""MCA's fixed width, which the paper does not state: the candidate whose row is nearest (studies/tq-paper)."""


def vary(field: str, values: Mapping[str, Any] | Iterable[Any]) -> Axis:
    """An axis over one field; values that have no labels of their own are their own labels.

    >>> vary("f", [5, 6])
    {'5': {'f': 5}, '6': {'f': 6}}
    """
    labelled = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return {label: {field: value} for label, value in labelled.items()}


_OTHERS = {"RFA": "rfa", "TM": "tm", "CM": "cm", "Krum": "krum", "Huber": "huber", "MCA (median)": "mca"}
RULES = vary("rule", {**_OTHERS, "TQ": "tq"})
FIXED = "MCA (fixed)"
CNN_RULES = vary("rule", {**_OTHERS, FIXED: f"mca(sigma={MCA_SIGMA})", "TQ": "tq"})
"""With MCA's fixed width too, where the model is the one it was found on."""
ATTACKS = vary("attack", {"GA": "ga", "ALIE": "alie", "BF": "bf", "IPM": "ipm", "LF": "lf", "MIMIC": "mimic"})
MIXERS = vary("mixer", {"alone": "", "with NNM": "nnm", "with Bucketing": "bucketing"})
RHOS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
