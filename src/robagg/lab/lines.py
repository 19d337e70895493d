"""One line of a store: a record with its checksum, and what is wrong with a line that is none."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from robagg.lab.run import RESULTS_VERSION

Record = dict[str, Any]
MARK = b'{"robagg":'
"""How every record begins."""
_HEAD = re.compile(rb'\{"robagg":%d,"(?:key":"|sum":"([0-9a-f]{8})",)' % RESULTS_VERSION)
"""How a record of this version goes on: with a checksum of all that follows it, or, in older stores, with its key."""
DAMAGED = "damaged"
JOINED = "more than one record"
STRANGE = "no record"


class OtherVersion(str):
    """The results version of a record that is not ours."""


def write_line(record: Record) -> bytes:
    """A record as a line, with its checksum behind the version.

    >>> write_line({"robagg": 1, "key": "a", "status": "ok"})
    b'{"robagg":1,"sum":"15154510","key":"a","status":"ok"}\\n'
    """
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    begin = MARK + b"%d," % RESULTS_VERSION
    if not text.startswith(begin + b'"key":"'):
        raise ValueError(
            f'a record must begin with its version and its key, {begin.decode()}"key":"...", '
            f"got {text[:40].decode()}..."
        )
    rest = text[len(begin) :]
    return begin + b'"sum":"%08x",' % zlib.crc32(rest) + rest + b"\n"


def read_line(line: bytes) -> Record | str:
    """The record that a line is, or in a word why it is none.

    >>> read_line(b'{"robagg":1,"sum":"15154510","key":"a","status":"ok"}')
    {'robagg': 1, 'key': 'a', 'status': 'ok'}
    >>> read_line(b'{"robagg":1,"sum":"15154510","key":"b","status":"ok"}')
    'damaged'
    """
    if not is_ours(line):
        return STRANGE
    head = _HEAD.match(line)
    if head is not None and head[1] is not None:
        rest = line[head.end() :]
        if zlib.crc32(rest) != int(head[1], 16):
            return JOINED if rest.count(b"}" + MARK) else DAMAGED
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return JOINED if line.count(b"}" + MARK) else DAMAGED
    if not isinstance(record, dict) or not isinstance(record.get("key"), str):
        return DAMAGED
    if record["robagg"] != RESULTS_VERSION:
        return OtherVersion(record["robagg"])
    if head is None:
        return DAMAGED
    record.pop("sum", None)
    return record


def is_ours(line: bytes) -> bool:
    """Whether a line, perhaps a torn one, begins as records do."""
    return line.startswith(MARK) or MARK.startswith(line)


def _refuse(constant: str) -> None:
    raise ValueError(f"a number must be finite, got {constant}")
