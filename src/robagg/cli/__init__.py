"""The command line: parses, calls, prints. Needs the extra `lab` (typer, rich)."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `robagg`."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"the command line needs {missing.name}: pip install 'robagg[lab]'")
    from robagg.cli.app import run_app

    run_app()
