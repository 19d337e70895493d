"""Aggregation of LoRA adapters, judged by the updates that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from robagg._core.aggregate import Request, aggregate
from robagg._core.rule import GramRule, Rule, parse
from robagg._core.stack import read
from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict, judge
from robagg.files.agreement import describe_fault, find_majority
from robagg.files.header import FileFaultError
from robagg.files.lora.adapter import Adapter, read_adapter, write_adapter
from robagg.files.lora.combine import combine, embed, measure_gram
from robagg.rules import Mean


def aggregate_adapters(
    folders: Sequence[str | Path],
    out: str | Path,
    rule: Rule | str,
    *,
    rank: int | None = None,
    weights: Any = None,
    max_weight: float | None = None,
    generator: torch.Generator | None = None,
) -> Verdict:
    """Aggregate one LoRA adapter a client, in PEFT's folders, into another one.

    Clients are compared by their updates `scale * B @ A`, which no pair of factors stands for alone; their inner
    products come from the factors. Ranks and scales may differ. Adapters that cannot be read, are not finite or have
    other modules than most are left out, with a reason, and counted against f.

    Args:
        folders: one a client, with `adapter_config.json` and `adapter_model.safetensors`.
        out: the folder to write. Its adapter has the sum of the believed ones' ranks, and a scale of 1.
        rule: a rule or chain, or its text, that combines the rows by their distances: Krum, MultiKrum, CAF,
            SpectralFilter, RFA, CC, Mean. Others need the median of each coordinate, which is no product of factors.
        rank: cut the result to this rank, by an SVD.
        weights: what each client claims to count; None: all alike.
        max_weight: the largest share of all that a claim can give a client; None: as far as f allows it.
        generator: what is random takes its numbers here.

    Returns:
        The verdict; its `value` is the path of `out`.

    References:
        Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang, Chen: LoRA: Low-Rank Adaptation of Large Language Models, ICLR
        2022, arXiv:2106.09685.
        Kalajdzievski: A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA, 2023, arXiv:2312.03732.
    """
    rule = parse(rule)
    core = rule.core
    if not isinstance(core, Mean) and (not isinstance(core, GramRule) or core.needs_median or core.scaled):
        raise ValueError(
            f"a rule for adapters must combine them by their distances, as krum, multikrum, caf, spectralfilter and "
            f"rfa do, got {core}, which needs the median of each coordinate"
        )
    if rank is not None and rank < 1:
        raise ValueError(f"rank must be at least 1, got {rank}")
    names = [str(folder) for folder in folders]
    adapters: dict[int, Adapter] = {}
    faults: dict[int, str] = {}
    for k, folder in enumerate(folders):
        try:
            adapters[k] = read_adapter(Path(folder))
        except (FileFaultError, OSError) as error:
            faults[k] = describe_fault(error)
    _, faults = find_majority(names, {k: adapter.form() for k, adapter in adapters.items()}, faults)
    kept = [k for k in adapters if k not in faults]
    gram = measure_gram([adapters[k].modules for k in kept])
    far = [place for place, length in enumerate(gram.diagonal().tolist()) if not length < float("inf")]
    if far:
        faults |= {kept[place]: "its update is not finite" for place in far}
        stay = [place for place in range(len(kept)) if place not in far]
        kept, gram = [kept[place] for place in stay], gram[stay][:, stay]
    if not kept:
        raise QuorumError(f"none of {len(names)} adapters can be used: {next(iter(faults.values()))}")
    stack = read([*embed(gram)], broken=dict(sorted(faults.items())))
    request = Request(weights, None, generator, verdict=True, max_weight=max_weight)
    left, outcome = aggregate(rule, stack, request)
    verdict = judge(rule, left, outcome)
    believed = [k for k in kept if float(verdict.weights[k]) != 0] or kept[:1]
    shares = [float(verdict.weights[k]) for k in believed]
    merged = combine([adapters[k].modules for k in believed], shares, rank)
    write_adapter(Path(out), merged, [adapters[k].config for k in believed])
    return replace(verdict, value=Path(out))
