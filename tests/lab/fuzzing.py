"""Hostile lines of stores, sweep files and texts of rules, drawn at random; tests/fuzzing.py tries many."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

from robagg import parse
from robagg.attacks import attacks
from robagg.lab.contents import read_file
from robagg.lab.lines import write_line
from robagg.lab.loading import find_fault, flatten
from robagg.lab.sweep_file import read_sweep

SPEC = {"rule": "tq(f=6)", "attack": "ipm", "task": "digits", "split": "rho(rho=0.5)", "n": 20, "f": 6, "seed": 0}
RECORD = {"robagg": 1, "key": "a" * 24, "status": "ok", "finished": "2026", "spec": {**SPEC, "settings": {}}} | {
    "accuracy": 93.5, "diverged": None, "curve": [[50, 90.0]], "notes": [], "plugins": {}, "seconds": 1.5
}  # fmt: skip
SWEEP = "rules = ['tq', 'nnm >> cm']\nattacks = ['ipm', 'alie']\nf = [1, 2]\n[strengths]\nalie = { z = [0.5] }\n"
RULES = ("tq(f=6)", "nnm(f=2) >> tq(iterations=5)", "clipping(radius=3.5) >> krum", "TrMean(1)", "ctma(base='rfa')")
ATTACKS = ("ipm(c0=0.5, jitter=0.12)", "minmax(along='sign')", "mixed(parts=['ipm', 'alie'])", "GA(30.0)")
PIECES = (
    "(",
    ")",
    ">>",
    "=",
    ",",
    "'",
    '"',
    "f",
    "1e999",
    "-1",
    "nan",
    "None",
    "\0",
    "\n",
    "[",
    "{",
    "é",
    "9" * 50,
    " ",
)
VALUES = (None, True, 0, -1, 1e308, 10**30, "", "x", [], [1], {}, {"a": 1}, "tq", [[1, 2]], 1 << 70)


def mutate(raw: bytes, random: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled or put in."""
    changed = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 3))):
        place = random.randrange(len(changed) + 1)
        kind = random.randrange(4)
        if kind == 0 and changed:
            changed[place % len(changed)] ^= 1 << random.randrange(8)
        elif kind == 1:
            del changed[place : place + random.randrange(20)]
        elif kind == 2:
            changed[place:place] = changed[place : place + random.randrange(200)]
        else:
            changed[place:place] = random.choice(PIECES).encode()
    return bytes(changed)


def try_store(random: random.Random, folder: Path) -> bool:
    """A store of a record that is changed in its values or in its bytes; what is read is sound or has a fault."""
    record = json.loads(json.dumps(RECORD))
    for _ in range(random.randrange(3)):
        part = random.choice((record, record["spec"])) if isinstance(record.get("spec"), dict) else record
        name = random.choice([*part, "more"])
        if random.random() < 0.3 and name not in ("robagg", "key"):
            part.pop(name, None)
        elif name not in ("robagg", "key"):
            part[name] = copy.deepcopy(random.choice(VALUES))
    line = write_line(record)
    raw = line + (mutate(line, random) if random.random() < 0.8 else line)
    path = folder / "runs.jsonl"
    path.write_bytes(raw)
    sound = [each for each in read_file(path).records.values() if find_fault(each) is None]
    return all(flatten(each)["method"] is not None for each in sound) and bool(sound)


def try_sweep(random: random.Random, folder: Path) -> bool:
    """A sweep file that is changed in its bytes."""
    path = folder / "sweep.toml"
    path.write_bytes(mutate(SWEEP.encode(), random))
    try:
        read_sweep(path)
    except (TypeError, ValueError) as error:
        return check_sentence(str(error))
    return True


def try_rule(random: random.Random, _: Path) -> bool:
    """The text of a rule or an attack that is changed."""
    read, texts = random.choice(((parse, RULES), (attacks.parse, ATTACKS)))
    text = mutate(random.choice(texts).encode(), random).decode("utf-8", "replace")
    try:
        str(read(text))
    except (TypeError, ValueError) as error:
        return check_sentence(str(error))
    return True


def check_sentence(text: str) -> bool:
    assert 0 < len(text) < 4000, text
    return False
