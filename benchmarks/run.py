"""`make bench`: everything that is measured on a CPU, one script after the other, and then the page.

python benchmarks/run.py                 renews benchmarks/results and docs/performance.md
python benchmarks/run.py --out FOLDER    measures only, and leaves both alone
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
MEASURED: dict[str, tuple[str, ...]] = {
    "cpu-n20": ("aggregate.py",),
    "cpu-n25": ("aggregate.py", "--n", "25", "--d", "11000000", "--peers", "cm,tm,krum"),
    "cpu-n64": ("aggregate.py", "--n", "64", "--d", "1000000", "--peers", "none"),
    "cpu-kernels": ("kernels.py",),
    "cpu-growth": ("growth.py",),
    "cpu-kinds": ("kinds.py",),
    "cpu-memory": ("memory.py",),
    "cpu-rounds": ("rounds.py",),
    "cpu-many": ("many.py",),
    "cpu-ranks": ("ranks.py",),
    "cpu-flower-1.2M": ("flower.py",),
}
"""File -> what writes it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the figures go")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    calls = [("agree.py",)]
    calls += [(*call, "--json", str(options.out / f"{name}.json")) for name, call in MEASURED.items()]
    if options.out == RESULTS:
        calls += [("document.py",), ("targets.py", "--device", "cpu")]
    failed, begin = [], time.perf_counter()
    for script, *rest in calls:
        code = subprocess.run([sys.executable, str(HERE / script), *rest]).returncode
        if code != 0:
            failed.append(script)
        print(f"({script}: {time.perf_counter() - begin:.0f} s since the start)", flush=True)
    if failed:
        print(f"these failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
