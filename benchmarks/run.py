"""`make bench`: everything that is measured on a CPU, one script after the other.

python benchmarks/run.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SCRIPTS: tuple[tuple[str, ...], ...] = (
    ("agree.py",),
    ("aggregate.py", "--json", str(RESULTS / "cpu-n20.json")),
    ("aggregate.py", "--n", "25", "--d", "11000000", "--no-peers", "--json", str(RESULTS / "cpu-n25.json")),
    ("aggregate.py", "--n", "64", "--d", "1000000", "--no-peers", "--json", str(RESULTS / "cpu-n64.json")),
    ("rounds.py", "--json", str(RESULTS / "cpu-rounds.json")),
)


def main() -> int:
    RESULTS.mkdir(exist_ok=True)
    return max(subprocess.run([sys.executable, str(HERE / script), *rest]).returncode for script, *rest in SCRIPTS)


if __name__ == "__main__":
    sys.exit(main())
