"""NVFlare's simulator for tests: it waits longer for its sites, and is started again where one of them did not start.

The simulator's own command gives the process of a site 60 seconds to listen at a port that it chose long before, and
goes on without a site that does not: the first round then waits for it until the round's own time is over.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from nvflare.private.fed.app.simulator import simulator

SITE_DID_NOT_START = (
    "Failed to create connection to the child process",
    "Address already in use",
    "Could not connect to the server cell",
    "cannot sync with",
)
"""What NVFlare, and nothing of robagg, says of a site that takes no part from the beginning."""
STARTS, DEADLINE = 4, 900.0


class Simulator:
    """A command that brings up the simulator; what it says since it was last started is in the folder's `log`."""

    def __init__(self, command: list[str], folder: Path, *, cwd: Path | None = None) -> None:
        self.command, self.folder, self.cwd = command, folder, cwd
        self.starts = 0

    @classmethod
    def of_job(cls, job: Any, folder: Path, n: int) -> Simulator:
        """Of a job with n sites, each a process that stays."""
        job.export_job(str(folder))
        place = [str(folder / job.name), "-w", str(folder / "workspace"), "-n", str(n), "-t", str(n)]
        return cls([sys.executable, __file__, *place], folder)

    def start(self) -> None:
        """Start the processes, none of which is left from before."""
        self.starts += 1
        for left in self.folder.glob("ready-*"):
            left.unlink()
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.cwd, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def kill(self) -> None:
        """End all processes at once, as a power cut would."""
        with contextlib.suppress(psutil.NoSuchProcess):
            sites = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            for site in sites:
                with contextlib.suppress(psutil.NoSuchProcess):
                    site.kill()
            psutil.wait_procs(sites)
        self.process.wait()

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Wait for something that comes about while the run goes on."""
        end = time.monotonic() + DEADLINE
        while not done():
            if self._misses_a_site() and self.starts < STARTS:
                self.kill()
                self.start()
            assert self.process.poll() in (None, 0) and time.monotonic() < end, self.said()[-3000:]
            time.sleep(0.02)

    def finish(self) -> str:
        """Run to the end; returns what was said."""
        self.start()
        self.wait_until(lambda: self.process.poll() == 0)
        return self.said()

    def said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _misses_a_site(self) -> bool:
        said = self.said()
        return any(text in said for text in SITE_DID_NOT_START)


class PatientRunner(simulator.SimulatorRunner):  # type: ignore[misc,unused-ignore]
    """The simulator with another time for a site's process to listen: a setting that its command has no option for."""

    def _generate_args(self, *args: Any, **kwargs: Any) -> Any:
        settings = super()._generate_args(*args, **kwargs)
        settings.set = [f"simulator_worker_timeout={DEADLINE / STARTS}"]
        return settings


if __name__ == "__main__":
    simulator.SimulatorRunner = PatientRunner
    parser = argparse.ArgumentParser()
    simulator.define_simulator_parser(parser)
    sys.exit(simulator.run_simulator(parser.parse_args()))
