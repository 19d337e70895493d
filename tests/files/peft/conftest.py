"""Without PEFT none of this is collected; `make test-peft` has it, in an environment of its own."""

from __future__ import annotations

from importlib.metadata import distributions

INSTALLED = {found.name for found in distributions()}
collect_ignore_glob = [] if {"peft", "transformers"} <= INSTALLED else ["test_*.py"]
