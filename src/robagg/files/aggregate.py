"""Aggregation of models that need not fit into memory: from files to a file, or from any sources of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from robagg._core.aggregate import Request, aggregate
from robagg._core.leaf import FLOATS, LeafSpec
from robagg._core.pytree import Form
from robagg._core.rule import Rule, parse
from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict, judge
from robagg.files.agreement import describe_fault, find_majority
from robagg.files.chunks import Loader, Progress, plan_chunks, size_chunks
from robagg.files.header import FileFaultError
from robagg.files.npz import NpzFile
from robagg.files.pt import PtFile
from robagg.files.safetensors import INDEX, SafetensorsFile, ShardedCheckpoint
from robagg.files.source import Entry, Source
from robagg.files.streamed import Stream, StreamedStack, Write
from robagg.files.writing import Writer

MEMORY = 1 << 30


def aggregate_files(
    paths: Sequence[str | Path],
    out: str | Path,
    rule: Rule | str,
    *,
    base: str | Path | None = None,
    weights: Any = None,
    max_weight: float | None = None,
    memory: int = MEMORY,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Aggregate one file a client into a safetensors file, reading a chunk at a time.

    Files that cannot be read, are not finite or hold other tensors than most are broken rows: left out, with a reason,
    and counted against f. Whole numbers (BatchNorm's counters) become their lower median.

    Args:
        paths: a `.safetensors`, `.npz` or `.pt` file for each client, an index of several safetensors files
            (`model.safetensors.index.json`), or a folder with one of these.
        out: the file to write; it is there whole in the end, or not at all.
        rule: a rule or a chain, or its text.
        base: the model that the clients started from: rules that measure from the origin (RFA, CC, Clipping) measure
            from it instead, so that the rows are differences to it. The files must hold the tensors that it holds.
        weights: what each client claims to count; None: all alike.
        max_weight: the largest share of all that a claim can give a client; None: as far as f allows it.
        memory: how many bytes the work may take, beside the interpreter and its libraries.
        generator: what is random takes its numbers here.
        progress: called with the number of the pass over the files, the chunks of it that are done, and their number.

    Returns:
        The verdict; its `value` is the path of `out`.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for k, x in enumerate(([1.0], [2.0], [90.0])):
        ...     np.savez(folder / f"{k}.npz", w=np.array(x))
        >>> verdict = aggregate_files(sorted(folder.glob("*.npz")), folder / "out.safetensors", "cm")
        >>> verdict.weights.argmax()
        tensor(1)
    """
    place = Path(out)
    if place.suffix != ".safetensors":
        raise ValueError(f"out must end in .safetensors, got {place.name!r}")
    start = None if base is None else _open_base(Path(base))
    faults: dict[int, str] = {}
    sources: list[Source | None] = []
    for k, path in enumerate(paths):
        try:
            sources.append(open_file(path))
        except (FileFaultError, OSError) as error:
            faults[k] = describe_fault(error)
            sources.append(None)
    names = [str(path) for path in paths]
    entries, faults = agree(names, sources, faults, start)
    with Writer(place, entries) as writer:
        return _stream(
            parse(rule),
            sources,
            writer.write,
            entries,
            faults,
            base=start,
            request=Request(weights, None, generator, verdict=True, max_weight=max_weight),
            memory=memory,
            progress=progress,
            value=place,
        )


def aggregate_sources(
    sources: Sequence[Source],
    write: Write,
    rule: Rule | str,
    *,
    base: Source | None = None,
    weights: Any = None,
    max_weight: float | None = None,
    memory: int = MEMORY,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Aggregate whatever can be read in parts: `aggregate_files` for sources of your own.

    Args:
        sources: one a client.
        write: takes a tensor's name, where in it numbers begin, and the numbers (k,); of each number the last call
            counts, since a client found to be broken late makes everything be written again.
        rule: a rule or a chain, or its text.
        base: the model that the clients started from; see `aggregate_files`.
        weights: what each client claims to count; None: all alike.
        max_weight: the largest share of all that a claim can give a client; None: as far as f allows it.
        memory: how many bytes the work may take.
        generator: what is random takes its numbers here.
        progress: called with the number of the pass, the chunks of it that are done, and their number.

    Returns:
        The verdict; its `value` is None.

    Example:
        >>> class Constant(Source):
        ...     def __init__(self, x):
        ...         self.name, self.x, self.entries = f"{x}", x, {"w": Entry(torch.float32, (2,))}
        ...     def read(self, name, start, out):
        ...         out.fill_(self.x)
        >>> value = torch.zeros(2)
        >>> def write(name, start, values):
        ...     value[start : start + len(values)] = values
        >>> verdict = aggregate_sources([Constant(x) for x in (1.0, 2.0, 90.0)], write, "cm")
        >>> value
        tensor([2., 2.])
    """
    entries, faults = agree([source.name for source in sources], sources, {}, base)
    request = Request(weights, None, generator, verdict=True, max_weight=max_weight)
    return _stream(
        parse(rule), sources, write, entries, faults, base=base, request=request, memory=memory, progress=progress
    )


def open_file(path: str | Path) -> Source:
    """The file of a client, by its name's ending; a FileFaultError or OSError says why there is none."""
    place = Path(path)
    if place.is_dir():
        found = [place / name for name in (INDEX, "model.safetensors") if (place / name).exists()]
        if not found:
            raise FileFaultError(f"the folder must hold {INDEX} or model.safetensors")
        place = found[0]
    if place.name.endswith(".safetensors.index.json"):
        return ShardedCheckpoint(place, str(path))
    kind = {".safetensors": SafetensorsFile, ".npz": NpzFile, ".pt": PtFile, ".pth": PtFile}.get(place.suffix)
    if kind is None:
        raise FileFaultError(f"it must be .safetensors, its index, .npz or .pt, got {place.suffix or 'no ending'}")
    return SafetensorsFile(place, str(path)) if kind is SafetensorsFile else kind(place)


def agree(
    names: Sequence[str], sources: Sequence[Source | None], faults: Mapping[int, str], base: Source | None
) -> tuple[Mapping[str, Entry], dict[int, str]]:
    """The tensors that the base has, or else most clients, and why each client that has others is broken."""
    forms = {k: _find_form(source) for k, source in enumerate(sources) if source is not None}
    want, reasons = find_majority(names, forms, faults, None if base is None else _find_form(base))
    model = base or sources[next(k for k in forms if forms[k] == want)]
    assert model is not None
    if not any(entry.dtype in FLOATS and entry.count for entry in model.entries.values()):
        raise ValueError(f"{model.name} must hold floating-point numbers, got none")
    return model.entries, reasons


def _stream(
    rule: Rule,
    sources: Sequence[Source | None],
    write: Write,
    entries: Mapping[str, Entry],
    faults: Mapping[int, str],
    *,
    base: Source | None,
    request: Request,
    memory: int,
    progress: Progress | None,
    value: Any = None,
) -> Verdict:
    n = len(sources)
    used = [*sources, base] if base is not None else list(sources)
    most = size_chunks(memory, len(used))
    stream = Stream(Loader(used, most, progress), plan_chunks(entries, most), write, base is not None)
    stack = StreamedStack(
        n=n,
        leaves=(),
        counters=(),
        kept=tuple(k for k in range(n) if k not in faults),
        reasons=dict(faults),
        rebuild=lambda values, counters: value,
        flatten=lambda point: [],
        stream=stream,
    )
    if not stack.kept:
        raise QuorumError(f"none of {n} files can be used: {next(iter(faults.values()), '')}")
    left, outcome = aggregate(rule, stack, request)
    stream.write_lower_medians(left.kept)
    return judge(rule, left, outcome, distances_known=stream.distances)


def _open_base(path: Path) -> Source:
    try:
        return open_file(path)
    except (FileFaultError, OSError) as error:
        raise ValueError(f"the base {path}: {describe_fault(error)}") from None


def _find_form(source: Source) -> Form:
    return frozenset(((name,), LeafSpec("tensor", entry.dtype, entry.shape)) for name, entry in source.entries.items())
