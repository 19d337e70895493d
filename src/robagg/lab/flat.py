"""Records as rows of a table, for pandas and for reports."""

from __future__ import annotations

from pathlib import Path

from robagg._core.registry import split_call
from robagg.lab.run import shorten
from robagg.lab.sources import keep_newest
from robagg.lab.store import Contents, Record, Store


def load(path: str | Path) -> list[Record]:
    """The records of a store, flat: `pandas.DataFrame(load(path))` has a row a run and a column a field.

    Spec, settings and environment are columns of their own; `method` is the rule without the f that is the run's,
    `mixers` and `core` are its two sides, `rho` is the split's where it has one. `curve` is a
    list of (round, accuracy). Runs of another source of a plugin than the
    one that is loaded, or the last, are left out.

    Example:
        >>> import tempfile
        >>> from robagg.lab import execute, grid
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> with Store(path) as store:
        ...     for run in grid(rules="nnm >> tq", attacks="ipm", f=4, rho=[0.5, 1.0], settings={"rounds": 2}):
        ...         store.append(execute(run, device="cpu"))
        >>> [(row["mixers"], row["core"], row["rho"], row["rounds"]) for row in load(path)]
        [('nnm', 'tq', 0.5, 2), ('nnm', 'tq', 1.0, 2)]
    """
    return flatten_all(read_runs(path))[0]


def read_runs(path: str | Path) -> Contents:
    """The records of a store that tell of a run, of one source of their plugins; the notes say what is left out."""
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no store at {path}")
    contents = Store(path).read()
    sound, notes = dict(contents.records), [*contents.notes]
    for key, record in contents.records.items():
        if lacking := [name for name in ("spec", "status", "accuracy", "diverged") if name not in record]:
            notes.append(f"the record {key[:40]!r} is not understood: it lacks {', '.join(lacking)}")
            del sound[key]
    return keep_newest(Contents(sound, notes))


def flatten_all(contents: Contents) -> tuple[list[Record], list[str]]:
    """The records without nesting, and a sentence for each that is not understood."""
    flat, notes = [], []
    for key, record in contents.records.items():
        try:
            flat.append(flatten(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            notes.append(f"the record {key[:40]!r} is not understood: {type(error).__name__}: {error}")
    return flat, notes


def flatten(record: Record) -> Record:
    """One record without nesting."""
    spec, environment = record["spec"], record.get("environment", {})
    method = shorten(spec["rule"], spec["f"])
    front, _, core = method.rpartition(" >> ")
    flat: Record = {name: value for name, value in spec.items() if name != "settings"} | spec["settings"]
    flat |= {"method": method, "mixers": front, "core": core, "rho": split_call(spec["split"], "split")[1].get("rho")}
    flat |= {name: value for name, value in record.items() if name not in ("robagg", "spec", "environment")}
    return {**flat, "version": record["robagg"], **environment}
