"""Adapters are judged by what they do to a model, and combined without forming it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import robagg as ra
from files.making import load, save
from robagg.files import aggregate_adapters
from robagg.files.lora.adapter import ENDS, Factors, read_adapter, write_adapter
from robagg.files.lora.combine import cut_rank, embed, measure_gram

SHAPES = {"layers.0.q_proj": (12, 20), "layers.0.v_proj": (9, 20), "layers.1.q_proj": (12, 20)}
"""(out, in)"""
TARGET = {name: torch.randn(shape, generator=torch.Generator().manual_seed(1)) for name, shape in SHAPES.items()}


def write(
    folder: Path, rank: int, *, noise: float = 0.1, times: float = 1.0, seed: int = 0, **config: Any
) -> dict[str, Tensor]:
    """An adapter whose update is near the target's best of that rank; the updates that it makes."""
    g = torch.Generator().manual_seed(seed)
    folder.mkdir()
    said = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": ["q_proj", "v_proj"], **config}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    scale = said["lora_alpha"] / (math.sqrt(rank) if said.get("use_rslora") else rank)
    tensors, updates = {}, {}
    for name, target in TARGET.items():
        wanted = times * target + noise * torch.randn(target.shape, generator=g)
        a, b = cut_rank(torch.eye(target.shape[1]), wanted / scale, rank)
        turn = torch.linalg.qr(torch.randn(rank, rank, generator=g))[0] * 2  # factors alone say nothing
        a, b = turn @ a, b @ torch.linalg.inv(turn)
        tensors[f"base_model.model.{name}.lora_A.weight"] = a
        tensors[f"base_model.model.{name}.lora_B.weight"] = b
        updates[name] = scale * (b @ a)
    save(folder / "adapter_model.safetensors", tensors)
    return updates


def form(folder: Path) -> dict[str, Tensor]:
    """The updates that an adapter makes."""
    return {name: f.scale * (f.b @ f.a) for name, f in read_adapter(folder).modules.items()}


@pytest.fixture
def clients(tmp_path: Path) -> tuple[list[Path], list[dict[str, Tensor]]]:
    """Seven of other ranks, scales and factors, the last of which is hostile."""
    folders = [tmp_path / f"client{k}" for k in range(7)]
    updates = [
        write(folders[0], 9, seed=0),
        write(folders[1], 9, seed=1, lora_alpha=3),
        write(folders[2], 9, seed=2, use_rslora=True),
        write(folders[3], 8, seed=3),
        write(folders[4], 9, seed=4, noise=0.2),
        write(folders[5], 7, seed=5),
        write(folders[6], 9, seed=6, times=-3.0),
    ]
    return folders, updates


def test_inner_products_are_those_of_the_updates(clients: tuple[list[Path], list[dict[str, Tensor]]]) -> None:
    folders, updates = clients
    gram = measure_gram([read_adapter(folder).modules for folder in folders])
    rows = torch.stack([torch.cat([update[name].flatten() for name in SHAPES]) for update in updates]).double()
    torch.testing.assert_close(gram, rows @ rows.T, rtol=1e-5, atol=1e-4)
    points = embed(gram)
    torch.testing.assert_close(points @ points.T, gram, rtol=1e-9, atol=1e-9)


def test_one_enormous_adapter_leaves_the_others_their_digits() -> None:
    gram = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1e80]], dtype=torch.float64)
    points = embed(gram)
    torch.testing.assert_close((points @ points.T)[:2, :2], gram[:2, :2], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "text", ["krum", "multikrum", "caf", "spectralfilter", "rfa", "cc", "mean", "nnm >> krum", "nnm >> caf"]
)
def test_rules_find_what_they_find_on_the_updates(
    text: str, clients: tuple[list[Path], list[dict[str, Tensor]]], tmp_path: Path
) -> None:
    folders, updates = clients
    rule = ra.parse(text, f=2)
    verdict = aggregate_adapters(folders, tmp_path / "out", rule)
    expected = rule.explain(updates)
    torch.testing.assert_close(verdict.weights, expected.weights, rtol=0, atol=1e-5)
    torch.testing.assert_close(verdict.distances, expected.distances, rtol=1e-5, atol=1e-4)
    assert verdict.not_believed == expected.not_believed
    for name, update in form(tmp_path / "out").items():
        torch.testing.assert_close(update, expected.value[name], rtol=1e-4, atol=1e-4)
    if text not in ("mean", "rfa", "cc"):
        assert 6 in verdict.not_believed


def test_the_result_has_the_believed_ones_ranks_together_or_is_cut(
    clients: tuple[list[Path], list[dict[str, Tensor]]], tmp_path: Path
) -> None:
    folders, updates = clients
    verdict = aggregate_adapters(folders, tmp_path / "whole", "krum(f=2)")
    chosen = int(verdict.weights.argmax())
    said = json.loads((tmp_path / "whole" / "adapter_config.json").read_text())
    assert said["r"] == said["lora_alpha"] == read_adapter(folders[chosen]).config.r
    aggregate_adapters(folders, tmp_path / "cut", "mean", rank=5)
    mean = {name: sum(update[name] for update in updates) / 7 for name in SHAPES}
    for name, update in form(tmp_path / "cut").items():
        u, s, v = torch.linalg.svd(mean[name])
        torch.testing.assert_close(update, u[:, :5] * s[:5] @ v[:5], rtol=1e-4, atol=1e-4)
    assert {len(f.a) for f in read_adapter(tmp_path / "cut").modules.values()} == {5}


def test_ranks_and_scales_may_differ_by_module(tmp_path: Path) -> None:
    write(tmp_path / "a", 9)
    config = {"rank_pattern": {"v_proj": 9, "proj": 3}, "alpha_pattern": {"layers.1.q_proj": 36, "1.q_proj": 5}, "r": 9}
    write(tmp_path / "b", 9, **config)
    plain, other = read_adapter(tmp_path / "a").modules, read_adapter(tmp_path / "b").modules
    assert [plain[name].scale for name in SHAPES] == [2, 2, 2]
    assert [other[name].scale for name in SHAPES] == [2, 2, 4]
    parts = {name: Factors(f.a[: 3 + k], f.b[:, : 3 + k], 1.0, ENDS[0]) for k, (name, f) in enumerate(plain.items())}
    write_adapter(tmp_path / "c", parts, [read_adapter(tmp_path / "a").config])
    again = read_adapter(tmp_path / "c").modules
    assert [(len(again[name].a), again[name].scale) for name in SHAPES] == [(3, 1), (4, 1), (5, 1)]


def test_embeddings_are_compared_too(tmp_path: Path) -> None:
    g = torch.Generator().manual_seed(0)
    for k in range(5):
        write(tmp_path / f"{k}", 4, seed=k)
        path = tmp_path / f"{k}" / "adapter_model.safetensors"
        more = {"base_model.model.tokens.lora_embedding_A": torch.randn(4, 50, generator=g) * (100 if k == 1 else 1)}
        more["base_model.model.tokens.lora_embedding_B"] = torch.randn(6, 4, generator=g)
        save(path, load(path) | more)
    verdict = aggregate_adapters([tmp_path / f"{k}" for k in range(5)], tmp_path / "out", "caf(f=1)")
    assert verdict.not_believed == [1]
    assert "base_model.model.tokens.lora_embedding_A" in load(tmp_path / "out" / "adapter_model.safetensors")


def change(folder: Path, **config: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))


def put(folder: Path, name: str, tensor: Tensor) -> None:
    path = folder / "adapter_model.safetensors"
    save(path, load(path) | {name: tensor})


WRONG = {
    "peft_type must be LORA, got 'IA3'": lambda folder: change(folder, peft_type="IA3"),
    "use_dora must not be set": lambda folder: change(folder, use_dora=True),
    "r must be a number above 0": lambda folder: change(folder, r=0),
    "lora_alpha must be a number above 0": lambda folder: change(folder, lora_alpha=float("nan")),
    "must have rank 3, as adapter_config.json says, got 9 and 9": lambda folder: change(folder, r=3),
    "without regular expressions, got '(a+)+$'": lambda folder: change(folder, alpha_pattern={"(a+)+$": 3}),
    "rank_pattern must be numbers by module": lambda folder: change(folder, rank_pattern=[3]),
    "init_lora_weights must leave the model": lambda folder: change(folder, init_lora_weights="pissa"),
    "must be JSON": lambda folder: (folder / "adapter_config.json").write_text("{" * 10**5),
    "No such file": lambda folder: (folder / "adapter_model.safetensors").unlink(),
    "factors of LoRA alone, got 'base_model.model.head.bias'": lambda folder: put(
        folder, "base_model.model.head.bias", torch.ones(2, 2)
    ),
    "must come with its other factor": lambda folder: put(folder, "base_model.model.x.lora_A.weight", torch.ones(2, 2)),
    "'base_model.model.layers.0.q_proj.lora_A.weight' is not finite": lambda folder: put(
        folder, "base_model.model.layers.0.q_proj.lora_A.weight", torch.full((9, 20), math.inf)
    ),
    "its update is not finite": lambda folder: put(
        folder, "base_model.model.layers.0.q_proj.lora_A.weight", torch.full((9, 20), 1e200, dtype=torch.float64)
    ),
    "has 'layers.0.q_proj' as an update of (12, 21) where most have an update of (12, 20)": lambda folder: put(
        folder, "base_model.model.layers.0.q_proj.lora_A.weight", torch.ones(9, 21)
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_an_adapter_that_cannot_be_used_is_left_out_with_a_reason(
    words: str, clients: tuple[list[Path], list[dict[str, Tensor]]], tmp_path: Path
) -> None:
    folders, updates = clients
    WRONG[words](folders[2])
    verdict = aggregate_adapters(folders, tmp_path / "out", "krum(f=2)")
    assert words in verdict.reasons[2]
    assert len(verdict.reasons[2]) < 400
    expected = ra.Krum(f=2).explain([*updates[:2], {"w": torch.zeros(1)}, *updates[3:]])
    assert verdict.not_believed == expected.not_believed
    with pytest.raises(ra.QuorumError, match="got 4 sound and 3 broken of 7"):
        aggregate_adapters([folders[2]] * 3 + folders[3:], tmp_path / "none", "krum(f=2)")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["tq", "huber", "mca", "cm", "tm", "nnm >> tq"])
def test_rules_that_need_the_median_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must combine them by their distances.*needs the median"):
        aggregate_adapters([tmp_path], tmp_path / "out", text)
