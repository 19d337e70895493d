"""Mistakes in what a server is given by the one who writes it: a sentence before anything is done, not a lost round."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from robagg._core.checks import is_whole
from robagg._core.leaf import describe_kind

VERSION = 1
"""Of the state of a server."""
STATE = {
    "version",
    "run",
    "round",
    "rule",
    "rule_state",
    "names",
    "skipped_in_a_row",
    "warned",
    "clients",
    "model",
    "extra",
}


def check_flags(**values: object) -> None:
    """Refuse what is neither True nor False: of a text, "no" would count as yes.

    >>> check_flags(weighted="no")
    Traceback (most recent call last):
    TypeError: weighted must be True or False, got 'no'
    """
    for name, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")


def check_counts(**values: object) -> None:
    """Refuse what is neither None nor a whole number, at least 1."""
    for name, value in values.items():
        if value is not None and not (is_whole(value) and value >= 1):
            raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")


def check_files(journal: object, state: object) -> None:
    """Refuse what names no file, and one file for two things."""
    for name, value in {"journal": journal, "state": state}.items():
        if value is not None and not (isinstance(value, str | Path) and Path(value).name):
            raise ValueError(f"{name} must be the path of a file, got {value!r}")
    if journal is not None and state is not None and Path(str(journal)).resolve() == Path(str(state)).resolve():
        raise ValueError(f"journal and state must be two files, got {str(journal)!r} for both")


def check_calls(on_reject: object, on_round: tuple[Any, ...], logger: object) -> None:
    """Refuse functions that cannot be called, and what is no logger."""
    if not (on_reject is None or callable(on_reject)):
        raise TypeError(f"on_reject must be a function, got {on_reject!r}")
    for function in on_round:
        if not callable(function):
            raise TypeError(f"on_round must be a function or several, got {function!r}")
    if not isinstance(logger, logging.Logger | logging.LoggerAdapter):
        raise TypeError(f"logger must be a logger of Python's logging, got {logger!r}")


def check_state(state: Any) -> None:
    """Refuse what `state_dict` did not give, and what a later version gave."""
    if not (isinstance(state, Mapping) and state.keys() >= STATE):
        raise ValueError(f"the state must be what RobustServer.state_dict() gave, got {describe_kind(state)}")
    if state["version"] != VERSION:
        raise ValueError(f"the state must be of version {VERSION}, got {state['version']!r}: update robagg")


def read_round(round_number: Any) -> int:
    """The number of a round as Python's own."""
    try:
        return int(round_number.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"the round must be a whole number, got {round_number!r}") from None


def read_asked(asked: Iterable[str] | None, replies: Mapping[str, Any]) -> list[str]:
    """Those who were asked, each once; None: all who replied."""
    if not isinstance(replies, Mapping):
        raise TypeError(f"replies must be a mapping of clients' names to what they sent, got {describe_kind(replies)}")
    if isinstance(asked, str | bytes) or not (asked is None or isinstance(asked, Iterable)):
        raise TypeError(f"asked must be the names of clients, got {asked!r}")
    names = list(replies if asked is None else asked)
    for name in (*names, *replies):
        if not (isinstance(name, str) or is_whole(name)):
            raise TypeError(f"a client's name must be a text or a whole number, got {name!r}")
    return list(dict.fromkeys(names))
