"""Checks a store as a whole: lines, fields of records, and the keys that runs have now."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from robagg.lab.lines import Record
from robagg.lab.loading import find_fault
from robagg.lab.run import Run
from robagg.lab.store import Store


@dataclass
class Check:
    """What a check of a store found."""

    records: int = 0
    """Those that were read, sound or not."""
    keys: int = 0
    """Of those, how many have the key that their run has now."""
    faults: list[str] = field(default_factory=list)
    """What is wrong, in sentences."""
    notes: list[str] = field(default_factory=list)
    """What could not be checked."""

    def __str__(self) -> str:
        return f"{self.records} records, {self.keys} of them with the key of their run, {len(self.faults)} faults"


def check_store(path: str | Path) -> Check:
    """Look at each line of a store, and compute each key again.

    A key that cannot be computed, because the plugin that its run names is not loaded, is noted and no fault.

    Example:
        >>> import tempfile
        >>> from robagg.lab import Options, grid, sweep
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> _ = sweep(grid(rules="tq", settings={"rounds": 2}), path, options=Options(device="cpu"))
        >>> print(check_store(path))
        1 records, 1 of them with the key of their run, 0 faults
        >>> _ = path.write_text(path.read_text().replace('"seed":0', '"seed":1'))
        >>> check_store(path).faults
        ['lines that were changed after they were written, or are cut, were left out: 1']
    """
    contents = Store(path).read()
    result, missing = Check(records=len(contents.records), faults=[*contents.notes]), dict[str, int]()
    for key, record in contents.records.items():
        if fault := find_fault(record) or _check_key(record, missing):
            result.faults.append(f"line {contents.lines[key]}, the record {key[:40]!r}: {fault}")
    result.keys = len(contents.records) - sum(missing.values()) - (len(result.faults) - len(contents.notes))
    result.notes = [
        f"{count} key{'s' * (count > 1)} could not be computed again, for want of {what}"
        for what, count in missing.items()
    ]
    return result


def _check_key(record: Record, missing: dict[str, int]) -> str | None:
    """What is wrong with a record's key; a plugin that is not there, or has another source now, is counted."""
    used = record.get("plugins") or {}
    try:
        run = Run.from_json(record["spec"])
        now, plugins = run.key, run.plugins
    except (ValueError, TypeError) as error:
        if not used:
            return f"its spec is not understood: {error}"
        now, plugins = "", {}
    if now == record["key"]:
        return None
    if other := [name for name, digest in used.items() if plugins.get(name) != digest]:
        what = f"the plugin{'s' * (len(other) > 1)} {', '.join(other)} as it was then: give --plugin FILE"
        missing[what] = missing.get(what, 0) + 1
        return None
    return f"its key must be {now}, which its run has"
