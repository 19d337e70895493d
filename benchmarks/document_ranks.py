"""Writes the tables of docs/scale.md about several ranks, from benchmarks/results/cpu-ranks.json.

python benchmarks/document_ranks.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from targets import read
from texts import tabulate, wrap
from timing import BUSY

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


def tell_busy(part: dict[str, Any]) -> str:
    busy = part["machine"]["busy"]
    if busy is None or busy <= BUSY:
        return ""
    return "\n" + wrap(f"When this was measured others kept {busy:.0%} of the machine busy just before.")


def write_growth(record: dict[str, Any]) -> str:
    ms = record["growth"]["ms"]
    counts = sorted({int(name.rsplit(", ", 1)[1]) for name in ms})
    rules = list(dict.fromkeys(name.rsplit(", ", 1)[0] for name in ms))
    head = ["rule", *(f"{count} rank{'s' * (count > 1)}, ms" for count in counts)]
    rows = [[f"`{rule}`", *(f"{ms[f'{rule}, {count}']:.0f}" for count in counts)] for rule in rules]
    return tabulate(head, rows) + tell_busy(record["growth"])


def write_hook(record: dict[str, Any]) -> str:
    rows = []
    for part, base, what in (
        ("hook", "all_reduce", f"{record['parameters']:,} numbers"),
        ("step", "10M, plain DDP", "a step, MLP of 10 million"),
        ("step", "digits, plain DDP", "a step, MLP on digits of 9 thousand"),
    ):
        ms, size = record[part]["ms"], base.partition(", ")[0]
        for name, taken in ms.items():
            if part == "hook" or name.startswith(f"{size}, "):
                label = name if part == "hook" else name.partition(", ")[2]
                rows.append([what, label, f"{taken:.1f}", f"{taken / ms[base]:.2f}"])
    busy = tell_busy(record["hook"]) or tell_busy(record["step"])
    return tabulate(["what", "by", "ms", "times the first"], rows) + busy


def write(page: str) -> str:
    """The page with its tables."""
    record = read("cpu-ranks")
    if record is None:
        raise SystemExit("benchmarks/results/cpu-ranks.json must be there: run benchmarks/ranks.py first")
    for title, table in (("growth in ranks", write_growth(record)), ("cost of the hook", write_hook(record))):
        page = re.sub(rf"(<!-- {title} -->\n).*?(<!-- end -->)", rf"\1{table}\2", page, count=1, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(write(PAGE.read_text()))
