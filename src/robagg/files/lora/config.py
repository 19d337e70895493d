"""adapter_config.json: what of it decides how strongly an adapter works, and the one that is written."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robagg._core.leaf import cut
from robagg.files.header import FileFaultError, read_json
from robagg.files.source import Place

CONFIG = "adapter_config.json"
LONGEST = 10_000_000
"""The most bytes of a configuration."""
OTHERWISE = (
    "use_dora",
    "use_qalora",
    "use_bdlora",
    "layer_replication",
    "alora_invocation_tokens",
    "target_parameters",
)
"""Settings with which an adapter does not do what its factors say alone."""
OTHER_BASES = ("pissa", "olora", "loftq", "corda", "lora_ga")
"""Ways to begin that change the model beneath."""
KEPT = ("base_model_name_or_path", "task_type", "revision")
"""What the clients' configurations say that is handed on, as most of them have it."""


@dataclass(frozen=True)
class AdapterConfig:
    """What of a configuration counts here."""

    r: int
    alpha: float
    rslora: bool
    ranks: Mapping[str, float]
    """By module, or by the end of its name, where it is another than r."""
    alphas: Mapping[str, float]
    transposed: bool
    """fan_in_fan_out: the layers beneath hold their weights transposed."""
    texts: Mapping[str, str]
    """What of `KEPT` it says."""

    def find_rank(self, module: str) -> float:
        return self.ranks.get(_find_key(self.ranks, module), self.r)

    def find_scale(self, module: str) -> float:
        """What the product of a module's factors is multiplied by."""
        rank = self.find_rank(module)
        alpha = self.alphas.get(_find_key(self.alphas, module), self.alpha)
        return alpha / (math.sqrt(rank) if self.rslora else rank)


def read_config(folder: Path) -> AdapterConfig:
    """The configuration in an adapter's folder; what cannot be taken is a FileFaultError."""
    place = Place(folder / CONFIG)
    if place.size > LONGEST:
        raise FileFaultError(f"{CONFIG} must have at most {LONGEST} bytes, got {place.size}")
    try:
        found = read_json(place.read_bytes(0, place.size))
    except FileFaultError as fault:
        raise FileFaultError(f"{CONFIG}: {fault}") from None
    if found.get("peft_type") != "LORA":
        raise FileFaultError(f"{CONFIG}: peft_type must be LORA, got {_show(found.get('peft_type'))}")
    for name in OTHERWISE:
        if found.get(name):
            raise FileFaultError(f"{CONFIG}: {name} must not be set, got {_show(found[name])}")
    begun = found.get("init_lora_weights", True)
    if isinstance(begun, str) and begun.startswith(OTHER_BASES):
        raise FileFaultError(f"{CONFIG}: init_lora_weights must leave the model beneath as it is, got {_show(begun)}")
    r = _read_number("r", found.get("r", 8))
    if r != int(r):
        raise FileFaultError(f"{CONFIG}: r must be a whole number, got {r}")
    return AdapterConfig(
        r=int(r),
        alpha=_read_number("lora_alpha", found.get("lora_alpha", 8)),
        rslora=found.get("use_rslora") is True,
        ranks=_read_pattern("rank_pattern", found.get("rank_pattern")),
        alphas=_read_pattern("alpha_pattern", found.get("alpha_pattern")),
        transposed=found.get("fan_in_fan_out") is True,
        texts={name: found[name] for name in KEPT if isinstance(found.get(name), str)},
    )


def write_config(ranks: Mapping[str, int], configs: Sequence[AdapterConfig]) -> bytes:
    """The configuration of an adapter whose modules have these ranks, and a scale of one."""
    r = Counter(ranks.values()).most_common(1)[0][0]
    other = {module: rank for module, rank in ranks.items() if rank != r}
    texts = {name: Counter(c.texts[name] for c in configs if name in c.texts).most_common(1) for name in KEPT}
    return json.dumps(
        {
            "peft_type": "LORA",
            **{name: found[0][0] if found else None for name, found in texts.items()},
            "inference_mode": True,
            "r": r,
            "lora_alpha": r,
            "rank_pattern": other,
            "alpha_pattern": other,
            "use_rslora": False,
            "target_modules": sorted(ranks),
            "fan_in_fan_out": configs[0].transposed,
            "bias": "none",
            "lora_dropout": 0.0,
        },
        indent=2,
    ).encode()


def _read_number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value < 2**63:
        raise FileFaultError(f"{CONFIG}: {name} must be a number above 0, got {_show(value)}")
    return float(value)


def _read_pattern(name: str, found: Any) -> dict[str, float]:
    """Numbers by module. PEFT takes names as regular expressions, of which a hostile one may take for ever."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise FileFaultError(f"{CONFIG}: {name} must be numbers by module, got {_show(found)}")
    for key in found:
        if not re.fullmatch(r"\w[\w.-]*", key):
            raise FileFaultError(f"{CONFIG}: {name} must name modules, without regular expressions, got {_show(key)}")
    return {key: _read_number(name, value) for key, value in found.items()}


def _find_key(pattern: Mapping[str, float], module: str) -> str:
    return next((key for key in pattern if module == key or module.endswith(f".{key}")), "")


def _show(value: Any) -> str:
    return cut(repr(value)) if isinstance(value, str | int | float | bool | None) else cut(type(value).__name__)
