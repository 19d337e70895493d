"""Gives records the keys that their runs have now: `python studies/tq-paper/rekey.py PLUGIN STORE...`.

The hash of a plugin's source is part of its runs' keys. Where only words or imports of the file have changed, and the
classes are equal to the last bit, their records are kept: each key and hash in a line is replaced, and nothing else.
Old and new keys are added to `keys.csv` in the store's folder.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from robagg import load_plugin
from robagg.lab import Run


def rekey(store: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Rewrite a store in place for the plugin classes of these names; old keys and the new ones."""
    moved, lines = {}, []
    for line in store.read_text(encoding="utf-8").splitlines(keepends=True):
        record = json.loads(line)
        if {name.lower() for name in record["plugins"]} & {*names}:
            run = Run.from_json(record["spec"])
            changes = {record["key"]: run.key} | {record["plugins"][name]: new for name, new in run.plugins.items()}
            for old, new in changes.items():
                line = line.replace(f'"{old}"', f'"{new}"')
            moved[record["key"]] = run.key
        lines.append(line)
    store.write_text("".join(lines), encoding="utf-8")
    return {old: new for old, new in moved.items() if old != new}


def main() -> None:
    plugin = load_plugin(sys.argv[1])
    for store in map(Path, sys.argv[2:]):
        moved = rekey(store, plugin.names)
        print(f"{store}: {len(moved)} keys")
        if not moved:
            continue
        listed = store.with_name("keys.csv")
        head = [] if listed.exists() else [("store", "old", "new")]
        with listed.open("a", newline="", encoding="utf-8") as out:
            rows = ((store.name, old, new) for old, new in moved.items())
            csv.writer(out, lineterminator="\n").writerows([*head, *rows])


if __name__ == "__main__":
    main()
