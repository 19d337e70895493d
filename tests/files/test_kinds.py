"""Every kind of file that models come in; what is hostile in them ends in a reason, and runs nothing."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import robagg as ra
from files.making import Model, draw_models, load, save
from robagg.files import FileFaultError, aggregate_files
from robagg.files.aggregate import open_file


def save_safetensors(path: Path, model: Model) -> Path:
    return save(path.with_suffix(".safetensors"), model)


def save_npz(path: Path, model: Model) -> Path:
    np.savez(path.with_suffix(".npz"), **{name: tensor.numpy() for name, tensor in model.items()})
    return path.with_suffix(".npz")


def save_compressed(path: Path, model: Model) -> Path:
    np.savez_compressed(path.with_suffix(".npz"), **{name: tensor.numpy() for name, tensor in model.items()})
    return path.with_suffix(".npz")


def save_pt(path: Path, model: Model) -> Path:
    torch.save(model, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def save_shards(path: Path, model: Model) -> Path:
    """A folder with one file for each tensor, and their index."""
    folder = path.with_suffix("")
    folder.mkdir()
    files = {name: f"model-{k:05}-of-{len(model):05}.safetensors" for k, name in enumerate(model)}
    for name, file in files.items():
        save(folder / file, {name: model[name]})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    return folder


SAVERS = [save_safetensors, save_npz, save_compressed, save_pt, save_shards]


def numpy_models(n: int) -> list[Model]:
    return [{name: t for name, t in model.items() if t.dtype != torch.bfloat16} for model in draw_models(n)]


@pytest.mark.parametrize("saver", SAVERS)
def test_every_kind_gives_what_memory_gives(saver: Callable[[Path, Model], Path], tmp_path: Path) -> None:
    models, out = numpy_models(7), tmp_path / "out.safetensors"
    paths = [saver(tmp_path / f"client{k}", model) for k, model in enumerate(models)]
    verdict = aggregate_files(paths, out, ra.TQ(f=2), memory=4 * 7 * 4096)
    expected = ra.TQ(f=2).explain(models)
    value = load(out)
    for name, tensor in expected.value.items():
        torch.testing.assert_close(value[name], tensor, rtol=1e-3 if tensor.dtype == torch.float16 else 1e-6, atol=1e-6)
    assert verdict.not_believed == expected.not_believed == [5, 6]


def test_kinds_may_be_mixed(tmp_path: Path) -> None:
    models, out = numpy_models(5), tmp_path / "out.safetensors"
    paths = [saver(tmp_path / f"client{k}", model) for k, (saver, model) in enumerate(zip(SAVERS, models, strict=True))]
    verdict = aggregate_files(paths, out, ra.Mean())
    assert verdict.not_believed == []
    assert torch.allclose(load(out)["wide.bias"], sum(model["wide.bias"] for model in models) / 5, atol=1e-6)


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hacked",)


def write_object(path: Path) -> Path:
    np.savez(path.with_suffix(".npz"), w=np.array([Attack()], dtype=object))
    return path.with_suffix(".npz")


def write_pickle(path: Path) -> Path:
    torch.save({"w": Attack()}, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def write_old_pickle(path: Path) -> Path:
    path.with_suffix(".pt").write_bytes(pickle.dumps({"w": Attack()}))
    return path.with_suffix(".pt")


def write_fortran(path: Path) -> Path:
    np.savez(path.with_suffix(".npz"), w=np.asfortranarray(np.ones((2, 3))))
    return path.with_suffix(".npz")


def write_expanded(path: Path) -> Path:
    torch.save({"w": torch.ones(1).expand(10**12)}, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def write_nested(path: Path) -> Path:
    torch.save({"model": {"w": torch.ones(3)}}, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def write_cut_zip(path: Path) -> Path:
    whole = save_npz(path, {"w": torch.ones(30)})
    whole.write_bytes(whole.read_bytes()[:-10])
    return whole


def write_pipe(path: Path) -> Path:
    os.mkfifo(path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


def write_climbing_index(path: Path) -> Path:
    index = path.with_suffix(".safetensors.index.json")
    index.write_text(json.dumps({"weight_map": {"w": "../../etc/model.safetensors"}}))
    return index


def write_wrong_index(path: Path) -> Path:
    save(path.parent / "shard.safetensors", {"v": torch.ones(2)})
    index = path.with_suffix(".safetensors.index.json")
    index.write_text(json.dumps({"weight_map": {"w": "shard.safetensors"}}))
    return index


def write_empty_folder(path: Path) -> Path:
    path.mkdir()
    return path


HOSTILE = {
    write_object: "must hold real numbers, got Python objects",
    write_pickle: "must be a dict of tensors that torch.save wrote",
    write_old_pickle: "must be a dict of tensors that torch.save wrote",
    write_fortran: "row by row",
    write_expanded: "must be dense numbers, row by row",
    write_nested: "'model' as dict where a tensor or an array must be",
    write_cut_zip: "must be a zip of arrays",
    write_pipe: "it must be a file",
    write_climbing_index: "must name safetensors files beside it, got '../../etc/model.safetensors'",
    write_wrong_index: "must hold 'w', as its index says, and does not",
    write_empty_folder: "the folder must hold",
}


@pytest.mark.parametrize("write", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence_and_nothing_of_it_runs(
    write: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "client")
    with pytest.raises(FileFaultError) as caught:
        open_file(path)
    assert HOSTILE[write] in str(caught.value)
    assert len(str(caught.value)) < 300
    assert not (tmp_path / "hacked").exists()


def test_an_ending_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFaultError, match=r"must be \.safetensors, its index, \.npz or \.pt, got \.bin"):
        open_file(tmp_path / "model.bin")


def test_an_archive_that_unpacks_to_less_than_it_says_is_rejected_where_it_ends(tmp_path: Path) -> None:
    models, out = numpy_models(5), tmp_path / "out.safetensors"
    paths = [save_compressed(tmp_path / f"client{k}", model) for k, model in enumerate(models)]
    raw = bytearray(paths[3].read_bytes())
    middle = raw.index(b"wide.weight.npy") + 4000
    raw[middle : middle + 50] = bytes(50)
    paths[3].write_bytes(raw)
    verdict = aggregate_files(paths, out, ra.TQ(f=1))
    assert verdict.reasons[3].startswith("could not be read on: 'wide.weight' cannot be decompressed")
    assert bool(torch.isfinite(load(out)["wide.weight"]).all())
