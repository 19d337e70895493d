"""NVFlare's simulator for tests: its sites start, or all of it is started again.

The simulator takes a free port for each site and lets go of it before the site's process, much later, listens there.
Now and then somebody else has the port by then, or the simulator meets somebody else at it, and on a slow machine the
process may take longer than it is given. The site is missing then, and the first round waits for it until its time is
over.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from nvflare.private.fed.app.simulator import simulator, simulator_runner

SITE_DID_NOT_START = (
    r"Failed to create connection to the child process",
    r"Address already in use",
    r"Could not connect to the server cell",
    r"cannot sync with \S+ Runner",
    r"(?:Communication error with|Subprocess died for) client (?P<site>[^\s:,]+)",
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
        look = time.monotonic()
        while not done():
            ended = self.process.poll() is not None
            if ended or time.monotonic() > look:
                look = time.monotonic() + 1
                if self.starts < STARTS and self._misses_a_site():
                    self.kill()
                    self.start()
                else:
                    assert done() or (not ended and look < end), self.said()[-3000:]
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
        for found in re.finditer("|".join(SITE_DID_NOT_START), said):
            site = found["site"]
            if site is None or f"Finished one task run for client: {site} " not in said:
                return True
        return False


PORTS = count(10_000 + 20 * (os.getpid() % 1000))
"""Below those that the system gives out by itself, and others for each process."""


def choose_ports(number: int) -> list[int]:
    """Ports that nobody listens at, nor did for a moment to find them."""
    found: list[int] = []
    while len(found) < number:
        port = next(PORTS)
        with socket.socket() as s:
            if s.connect_ex(("localhost", port)) != 0:
                found.append(port)
    return found


class PatientRunner(simulator.SimulatorRunner):  # type: ignore[misc,unused-ignore]
    """The simulator with a longer time for a site's process to listen, which its command has no option for."""

    def _generate_args(self, *args: Any, **kwargs: Any) -> Any:
        settings = super()._generate_args(*args, **kwargs)
        settings.set = [f"simulator_worker_timeout={DEADLINE / STARTS}"]
        return settings


if __name__ == "__main__":
    simulator.SimulatorRunner = PatientRunner
    simulator_runner.get_open_ports = choose_ports
    parser = argparse.ArgumentParser()
    simulator.define_simulator_parser(parser)
    sys.exit(simulator.run_simulator(parser.parse_args()))
