"""Adapters that PEFT trained and saved: what is merged of them loads in PEFT, and does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from robagg.files import aggregate_adapters

VOCABULARY = 60
WORDS = torch.arange(5 * 24).reshape(5, 24) * 7 % VOCABULARY
RANKS = (4, 8, 8, 16)
HOSTILE = 3


def build_model() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    ).eval()


def train(folder: Path, k: int, **more: Any) -> dict[str, Tensor]:
    """A client that fine-tunes by LoRA, the hostile one away from its data; what its adapter adds to each weight."""
    config = {"r": RANKS[k], "lora_alpha": 2 * RANKS[k], "target_modules": ["q_proj", "v_proj", "down_proj"], **more}
    model = get_peft_model(build_model(), LoraConfig(task_type="CAUSAL_LM", **config))
    torch.manual_seed(k)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.5)
    sign = -3 if k == HOSTILE else 1
    for _ in range(15):
        loss = model(input_ids=WORDS, labels=WORDS).loss
        optimizer.zero_grad()
        (sign * loss).backward()
        optimizer.step()
    model.save_pretrained(folder)
    return read_updates(folder)


def read_updates(folder: Path) -> dict[str, Tensor]:
    """What PEFT itself adds to each weight when it loads and merges the adapter."""
    before = dict(build_model().named_parameters())
    after = dict(PeftModel.from_pretrained(build_model(), folder).merge_and_unload().named_parameters())
    updates = {name: (after[name] - before[name]).detach() for name in before}
    return {name: update for name, update in updates.items() if bool(update.any())}


def ask(folder: Path) -> float:
    with torch.no_grad():
        return float(PeftModel.from_pretrained(build_model(), folder).eval()(input_ids=WORDS, labels=WORDS).loss)


@pytest.mark.parametrize(
    "more",
    [{}, {"use_rslora": True}, {"rank_pattern": {"v_proj": 3}, "alpha_pattern": {"layers.1.self_attn.q_proj": 5}}],
)
def test_the_merged_adapter_of_four_clients_loads_and_the_hostile_one_is_named(
    more: dict[str, Any], tmp_path: Path
) -> None:
    folders = [tmp_path / f"client{k}" for k in range(4)]
    updates = [train(folder, k, **more) for k, folder in enumerate(folders)]
    verdict = aggregate_adapters(folders, tmp_path / "merged", "caf(f=1)")
    assert verdict.not_believed == [HOSTILE]
    merged = read_updates(tmp_path / "merged")
    assert merged.keys() == updates[0].keys()
    for name, update in merged.items():
        expected = sum(float(weight) * u[name] for weight, u in zip(verdict.weights, updates, strict=True))
        torch.testing.assert_close(update, expected, rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        start = float(build_model()(input_ids=WORDS, labels=WORDS).loss)
    assert ask(tmp_path / "merged") < start < ask(folders[HOSTILE])


def test_a_merged_adapter_that_was_cut_loads(tmp_path: Path) -> None:
    folders = [tmp_path / f"client{k}" for k in range(4)]
    for k, folder in enumerate(folders):
        train(folder, k)
    aggregate_adapters(folders, tmp_path / "cut", "nnm(f=1) >> caf(f=1)", rank=6)
    loaded = PeftModel.from_pretrained(build_model(), tmp_path / "cut")
    assert {p.shape[0] for name, p in loaded.named_parameters() if "lora_A" in name} == {6}
    with torch.no_grad():
        start = float(build_model()(input_ids=WORDS, labels=WORDS).loss)
    assert ask(tmp_path / "cut") < start
