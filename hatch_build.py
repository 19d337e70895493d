"""Builds the CPU kernels with the package: `python hatch_build.py` builds them in place, hatchling calls the hook.

Where there is no C compiler, or it fails, the package is a pure one that computes with torch alone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # building in place needs no hatchling
    BuildHookInterface = object  # type: ignore[assignment, misc]

KERNELS = Path("src", "robagg", "kernels")
LIBRARY = KERNELS / ("_cpu.dylib" if sys.platform == "darwin" else "_cpu.so")
# No -march: the library asks the CPU at run time. No -ffast-math: NaN and Inf must show. No contraction of a*b+c: all
# instruction sets then agree to the bit where they should.
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"]


def compile_kernels(root: Path) -> None:
    """Compile cpu.c to the library beside it; OSError or CalledProcessError where that fails."""
    library = root / LIBRARY
    fresh = library.with_name(f"{library.name}.{os.getpid()}")  # a process may be using the old one
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, str(root / KERNELS / "cpu.c"), "-o", str(fresh), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        fresh.replace(library)
    finally:
        fresh.unlink(missing_ok=True)


def platform_tag() -> str:
    """The platform a wheel with the library runs on, such as linux_x86_64."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Adds the library to wheels and editable installs; source distributions carry the source alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        try:
            compile_kernels(root)
        except (OSError, subprocess.CalledProcessError) as error:
            (root / LIBRARY).unlink(
                missing_ok=True
            )  # one from another build or machine must not slip into a pure wheel
            warnings.warn(
                f"robagg is built without its C kernels and will use torch alone: {explain(error)}", stacklevel=1
            )
            return
        build_data["artifacts"].append(LIBRARY.as_posix())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def explain(error: Exception) -> str:
    """What went wrong in one line: the compiler's first error, or why it did not start."""
    said = (getattr(error, "stderr", None) or "").splitlines()
    return next((line for line in said if "error" in line), str(error))


if __name__ == "__main__":
    try:
        compile_kernels(Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"The C kernels could not be built: {explain(error)}")
