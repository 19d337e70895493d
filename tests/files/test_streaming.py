"""What is aggregated in chunks is what is aggregated in memory."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

import robagg as ra
from files.making import Model, draw_models, load, save, save_all
from robagg._core.rule import stages
from robagg.files import Entry, Source, aggregate_files, aggregate_sources
from robagg.files.chunks import SMALLEST, plan_chunks, size_chunks

LEAST = 4 * 12 * SMALLEST
"""Memory for twelve files, in chunks as small as they may be."""
WHOLE = {"bulyan", "meamed", "signguard"}
"""Rules that refuse rows that are streamed."""
RULES = [name for name, cls in stages.classes().items() if issubclass(cls, ra.Rule) and name not in WHOLE]
CHAINS = [
    "nnm >> tq",
    "nnm >> cm",
    "bucketing >> tq",
    "clipping(norm=90.0) >> tq",
    "nnm >> krum",
    "clipping >> nnm >> rfa",
]


def same(verdict: ra.Verdict, expected: ra.Verdict, out: Path, models: list[Model]) -> None:
    value = load(out)
    assert value.keys() == expected.value.keys()
    for name, tensor in expected.value.items():
        assert value[name].dtype == tensor.dtype
        assert value[name].shape == tensor.shape
        rounding = 2 * torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0
        torch.testing.assert_close(value[name], tensor, rtol=rounding, atol=max(rounding, 2e-6) if rounding else 0)
    torch.testing.assert_close(verdict.weights, expected.weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(verdict.distances, expected.distances, rtol=1e-5, atol=0, equal_nan=True)
    assert verdict.not_believed == expected.not_believed
    assert verdict.rejected.tolist() == expected.rejected.tolist()
    assert (verdict.f, verdict.rule, verdict.note) == (expected.f, expected.rule, expected.note)
    assert verdict.median_weight == pytest.approx(expected.median_weight, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.* was given no root:RuntimeWarning")
@pytest.mark.parametrize("text", [*RULES, *CHAINS])
def test_every_rule_finds_in_chunks_what_it_finds_in_memory(text: str, tmp_path: Path) -> None:
    models = draw_models(11)
    rule, out = ra.parse(text, f=3), tmp_path / "out.safetensors"
    draws = [torch.Generator().manual_seed(3) for _ in range(2)]
    passes = set()

    def report(number: int, done: int, total: int) -> None:
        passes.add(number)

    verdict = aggregate_files(save_all(tmp_path, models), out, rule, memory=LEAST, generator=draws[0], progress=report)
    same(verdict, rule.explain(models, generator=draws[1]), out, models)
    assert verdict.value == out
    mixed = bool(rule.mixers) and (getattr(rule.core, "needs_median", False) or isinstance(rule.core, ra.SortedRule))
    sorts_alone = isinstance(rule.core, ra.SortedRule | ra.Mean) and not mixed
    # One more for whole numbers. Behind a mixer that sees distances the rows are sketched first as they were sent.
    scaled = getattr(rule.core, "scaled", False)
    assert len(passes) - 1 <= (1 if sorts_alone else 3 if mixed or scaled else 2)


@pytest.mark.parametrize("text", ["tq", "cm", "nnm >> tq", "caf"])
def test_client_weights_count_in_chunks_as_in_memory(text: str, tmp_path: Path) -> None:
    models, claims = draw_models(11), [5, 1, 1, 2, 9, 3, 1, 1, 2, 4, 1]
    rule, out = ra.parse(text, f=2), tmp_path / "out.safetensors"
    verdict = aggregate_files(save_all(tmp_path, models), out, rule, memory=LEAST, weights=claims)
    expected = rule.explain(models, weights=claims)
    same(verdict, expected, out, models)
    assert verdict.shares is not None
    assert expected.shares is not None
    assert verdict.shares.tolist() == expected.shares.tolist()


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e-30])
@pytest.mark.parametrize("text", ["tq", "krum", "cm", "rfa"])
def test_numbers_near_the_ends_of_float64_are_borne(text: str, size: float, tmp_path: Path) -> None:
    models = [{"w": model["wide.weight"].double() * size} for model in draw_models(9)]
    models[-1]["w"] = models[-1]["w"] * 1e20
    rule, out = ra.parse(text, f=2), tmp_path / "out.safetensors"
    verdict = aggregate_files(save_all(tmp_path, models), out, rule, memory=LEAST)
    expected = rule.explain(models)
    torch.testing.assert_close(load(out)["w"] / size, expected.value["w"] / size, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(verdict.distances / size, expected.distances / size, rtol=1e-6, atol=0)
    assert verdict.reasons == expected.reasons


@pytest.mark.parametrize("text", ["tq", "cm", "mean", "nnm >> krum", "rfa"])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_not_finite_in_the_middle_of_a_file_costs_its_client_alone(
    text: str, number: float, tmp_path: Path
) -> None:
    models = draw_models(9)
    models[2]["half"][20, 7] = number
    models[5]["wide.bias"][3] = number
    rule, out = ra.parse(text, f=2), tmp_path / "out.safetensors"
    verdict = aggregate_files(save_all(tmp_path, models), out, rule, memory=LEAST)
    assert verdict.reasons[2] == verdict.reasons[5] == "not finite"
    same(verdict, rule.explain(models), out, models)


def test_files_that_cannot_be_used_are_named_and_count_against_f(tmp_path: Path) -> None:
    models = draw_models(9)
    paths = save_all(tmp_path, models)
    paths[0].write_bytes(paths[0].read_bytes()[:-5])
    save(paths[1], {**models[1], "wide.bias": torch.zeros(71)})
    paths[2].unlink()
    out = tmp_path / "out.safetensors"
    verdict = aggregate_files(paths, out, ra.TQ(f=3), memory=LEAST)
    assert "must lie within the file" in verdict.reasons[0]
    assert (
        verdict.reasons[1] == "has 'wide.bias' as tensor torch.float32 (71,) where most have tensor torch.float32 (70,)"
    )
    assert verdict.reasons[2] == "No such file or directory"
    assert verdict.f == ra.TQ(f=3).explain(models[:6] + [{"w": torch.zeros(1)}] * 3).f == 2
    paths[3].write_text("no model")
    with pytest.raises(ra.QuorumError, match=r"got 5 sound and 4 broken of 9 \(row 0: the bytes of"):
        aggregate_files(paths, tmp_path / "none.safetensors", ra.TQ(f=3), memory=LEAST)
    assert not (tmp_path / "none.safetensors").exists()
    assert not list(tmp_path.glob(".*"))


class Held(Source):
    """A model in memory that fails from some read on."""

    def __init__(self, name: str, model: Model, good: float = math.inf) -> None:
        self.name, self.model, self.left = name, model, good
        self.entries = {key: Entry(tensor.dtype, tuple(tensor.shape)) for key, tensor in model.items()}

    def read(self, name: str, start: int, out: Tensor) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("the disk is gone")
        out.copy_(self.model[name].reshape(-1)[start : start + len(out)])


@pytest.mark.parametrize("text", ["tq", "tm", "mean", "nnm >> tq"])
@pytest.mark.parametrize("good", [0, 4, 14])
def test_a_source_that_fails_midway_is_a_broken_row(text: str, good: int) -> None:
    models = draw_models(9)
    value = {name: torch.zeros_like(tensor) for name, tensor in models[0].items()}

    def write(name: str, start: int, values: Tensor) -> None:
        value[name].view(-1)[start : start + len(values)] = values

    sources = [Held(f"{k}", model, good if k == 4 else math.inf) for k, model in enumerate(models)]
    rule = ra.parse(text, f=2)
    verdict = aggregate_sources(sources, write, rule, memory=LEAST)
    if sources[4].left < 0:
        assert verdict.reasons[4] == "could not be read on: the disk is gone"
        expected = rule.explain([*models[:4], {"w": torch.zeros(1)}, *models[5:]])
    else:
        expected = rule.explain(models)
    assert verdict.not_believed == expected.not_believed
    torch.testing.assert_close(value["wide.weight"], expected.value["wide.weight"], rtol=1e-5, atol=2e-6)
    assert torch.equal(value["counts"], expected.value["counts"])


@pytest.mark.parametrize(
    "text", ["rfa(iterations=3)", "cc(tau=30.0)", "clipping(norm=30.0) >> mean", "tq", "nnm >> cm"]
)
def test_with_a_base_rows_are_differences_to_it(text: str, tmp_path: Path) -> None:
    models = [{"w": model["wide.weight"], "b": model["wide.bias"]} for model in draw_models(9)]
    start = {"w": torch.full((90, 70), 1.5), "b": torch.full((70,), -2.0)}
    rule, out = ra.parse(text, f=2), tmp_path / "out.safetensors"
    base = save(tmp_path / "base.safetensors", start)
    verdict = aggregate_files(save_all(tmp_path, models), out, rule, memory=LEAST, base=base)
    expected = rule.explain([{name: model[name] - start[name] for name in start} for model in models])
    for name in start:
        torch.testing.assert_close(load(out)[name], expected.value[name] + start[name], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(verdict.weights, expected.weights, rtol=0, atol=1e-5)


def test_a_base_decides_what_a_file_must_hold_and_must_be_sound_itself(tmp_path: Path) -> None:
    models = [{"w": torch.ones(5) * k} for k in range(5)]
    paths, out = save_all(tmp_path, models), tmp_path / "out.safetensors"
    with pytest.raises(ValueError, match=r"the base .*missing.*: No such file"):
        aggregate_files(paths, out, "rfa", base=tmp_path / "missing.safetensors")
    other = save(tmp_path / "other.safetensors", {"w": torch.ones(6)})
    with pytest.raises(ra.QuorumError, match="none of 5 files can be used"):
        aggregate_files(paths, out, "rfa", base=other)
    broken = save(tmp_path / "broken.safetensors", {"w": torch.tensor([1.0, math.nan, 0, 0, 0])})
    with pytest.raises(ValueError, match="the base must be finite"):
        aggregate_files(paths, out, "rfa", base=broken)
    assert not out.exists()


def test_chunks_hold_each_number_once_and_no_more_than_they_may() -> None:
    entries = {
        "a": Entry(torch.float32, (7, 9)),
        "b": Entry(torch.int64, (100,)),
        "c": Entry(torch.float32, ()),
        "d": Entry(torch.float64, (33,)),
    }
    chunks = plan_chunks(entries, 80)
    assert all(chunk.count * chunk.dtype.itemsize <= 80 for chunk in chunks)
    found = [(name, at) for chunk in chunks for name, start, count in chunk.parts for at in range(start, start + count)]
    assert sorted(found) == sorted((name, at) for name, entry in entries.items() for at in range(entry.count))


def test_too_little_memory_is_refused() -> None:
    assert 2 * 100 * size_chunks(50_000_000, 100) <= 50_000_000
    with pytest.raises(ValueError, match="memory must be at least 1638400 bytes for 100 files, got 1000"):
        size_chunks(1000, 100)


GROWING = """
import torch
from pathlib import Path
from robagg.files import Entry, Source, aggregate_sources

class Large(Source):
    entries = {"w": Entry(torch.float32, (50_000_000,))}
    def __init__(self, k):
        self.name, self.k = str(k), k
    def read(self, name, start, out):
        out.fill_(self.k)

def report(number, done, total):
    if done in (10, total):
        lines = Path("/proc/self/status").read_text().splitlines()
        print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

aggregate_sources([Large(k) for k in range(6)], lambda *part: None, "tq(f=1)", memory=6 << 23, progress=report)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_memory_does_not_grow_with_the_number_of_chunks() -> None:
    told = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, check=True).stdout.split()
    first, *others = (int(line) / 1024 for line in told)
    assert len(others) >= 3
    assert others[-1] - first < 40, f"from {first:.0f} to {others[-1]:.0f} MiB, where all chunks' medians are 190"
