"""A Flower deployment on this machine: SuperLink and SuperNodes over TLS, with an authenticated key for each node."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}
CERTIFICATE = """
[req]
distinguished_name = name
prompt = no
[name]
CN = localhost
[extensions]
subjectAltName = DNS:localhost, IP:127.0.0.1
"""


def find_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Deployment:
    """Starts and stops the processes; what they say is in files below `folder`. Without nodes it simulates them."""

    def __init__(self, folder: Path, nodes: int, paths: list[str], *, programs: Path | None = None) -> None:
        self.folder = folder
        self.nodes = nodes
        self.simulation = nodes == 0
        self.port, *self.node_ports = find_ports(1 + nodes)
        programs = Path(sys.executable).parent if programs is None else programs
        self.environment = os.environ | QUIET
        self.environment |= {"FLWR_HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(paths)}
        self.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Deployment:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        (self.folder / "home").mkdir(exist_ok=True)
        if self.simulation:
            address = f'address = "127.0.0.1:{self.port}"\ninsecure = true\n'
            (self.folder / "home" / "config.toml").write_text(f"[superlink.test]\n{address}")
            place = ["--host", "127.0.0.1", "--port", str(self.port), "--disable-runtime-dependency-installation"]
            self.start("superlink", "flower-superlink", "--insecure", "--simulation", *place)
            self._wait_for_port(self.port)
            return
        self._make_certificates()
        (self.folder / "home" / "config.toml").write_text(
            f'[superlink.test]\naddress = "127.0.0.1:{self.port}"\nroot-certificates = "{self.folder / "ca.crt"}"\n'
        )
        tls = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.pem", "--ssl-keyfile", "server.key"]
        self.start("superlink", "flower-superlink", *tls, "--enable-supernode-auth", "--port", str(self.port),
                   "--host", "127.0.0.1", "--disable-runtime-dependency-installation")  # fmt: skip
        self._wait_for_port(self.port)
        for i in range(self.nodes):
            key = f"node{i}"
            self.call("ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f", key)
            self.call("flwr", "supernode", "register", f"{key}.pub", "test")
            link = ["--superlink", f"127.0.0.1:{self.port}", "--root-certificates", "ca.crt", "--host", "127.0.0.1"]
            mine = ["--auth-supernode-private-key", key, "--port", str(self.node_ports[i])]
            config = ["--node-config", f"partition-id={i} num-partitions={self.nodes}"]
            self.start(key, "flower-supernode", *link, *mine, *tls, *config)

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)
        for file in self._files:
            file.close()

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that what it starts goes with it."""
        file = (self.folder / f"{name}.log").open("wb")
        self._files.append(file)
        self.processes[name] = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return self.processes[name]

    def kill(self, name: str) -> None:
        """End a process and its children at once, as a power cut would."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()

    def call(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_until(self, name: str, text: str, seconds: float) -> None:
        """Wait until a process has said something."""
        end = time.monotonic() + seconds
        while text not in self.said(name):
            assert time.monotonic() < end, f"{name} did not say {text!r}:\n{self.said(name)[-3000:]}"
            assert name in self.processes
            time.sleep(0.5)

    def _wait_for_port(self, port: int) -> None:
        end = time.monotonic() + 300
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert time.monotonic() < end, self.said("superlink")
            time.sleep(0.3)

    def _make_certificates(self) -> None:
        assert shutil.which("openssl")
        (self.folder / "certificate.cnf").write_text(CERTIFICATE)
        new_key = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
        self.call(*new_key, "-x509", "-days", "2", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt")
        self.call(*new_key, "-config", "certificate.cnf", "-keyout", "server.key", "-out", "server.csr")
        sign = ["openssl", "x509", "-req", "-days", "2", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]
        names = ["-extfile", "certificate.cnf", "-extensions", "extensions"]
        self.call(*sign, *names, "-in", "server.csr", "-out", "server.pem")
