"""A page on this machine that follows a run: it asks for the rounds that the journal has gained."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from robagg.report.page.build import build_page, tell_kind, write_policy
from robagg.report.page.gather_rounds import Rounds
from robagg.server.journal import list_files

HOST = "127.0.0.1"
HOSTS = {HOST, "localhost"}
"""By these names alone the server is asked: a web page elsewhere can give its own name this address."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class WatchServer(ThreadingHTTPServer):
    """Serves the page of a journal to this machine; a journal that is not there yet may come.

    Args:
        journal: the file that a server writes.
        port: where to listen; 0 takes a free port.

    Example:
        >>> import tempfile
        >>> with WatchServer(Path(tempfile.mkdtemp()) / "rounds.jsonl", port=0) as server:
        ...     server.address.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True

    def __init__(self, journal: str | Path, port: int) -> None:
        self.journal = Path(journal)
        if not self.journal.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {self.journal.parent} for the journal {self.journal.name}")
        if any(file.stat().st_size for file in list_files(self.journal)) and tell_kind(self.journal) != "journal":
            raise ValueError(f"{self.journal} must be the journal of a server, got a store: robagg report makes a page")
        self._rounds = Rounds(self.journal)
        self._lock = Lock()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise OSError(f"port must be free, got {port} ({error.strerror}); 0 takes a free one") from error

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOST}:{self.server_port}/"

    def list_rounds(self, known: str, first: int, names: int, texts: int) -> dict[str, Any]:
        """What a page lacks that has so many rounds, names and texts of a journal; all of it, where that is another."""
        with self._lock:
            if self._rounds.tail.is_replaced():
                self._rounds = Rounds(self.journal)
            self._rounds.read()
            same = known == self._rounds.id
            return self._rounds.list_from(*((first, names, texts) if same else (0, 0, 0)))


class Handler(BaseHTTPRequestHandler):
    """Answers for the page and for its rounds, and for nothing else."""

    server: WatchServer
    server_version, sys_version = "robagg", ""
    timeout = 20

    def do_GET(self) -> None:
        if not self._is_asked_by_name():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", f"ask for {self.server.address}")
            return
        asked = urlsplit(self.path)
        if asked.path == "/":
            name = self.server.journal.name
            page = build_page({"name": name, "notes": []}, name, "rounds", live=True)
            self._send(HTTPStatus.OK, "text/html", page, write_policy("rounds", live=True))
        elif asked.path == "/rounds":
            self._answer(parse_qs(asked.query))
        elif asked.path == "/favicon.ico":  # browsers ask for one
            self._send(HTTPStatus.NO_CONTENT, "text/plain", "")
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page")

    def _answer(self, query: dict[str, list[str]]) -> None:
        try:
            places = [int(query.get(name, ["0"])[0]) for name in ("first", "names", "texts")]
        except ValueError:
            places = [-1]
        if min(places) < 0:
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", "first, names and texts must be whole numbers from 0 on")
            return
        rounds = self.server.list_rounds(query.get("id", [""])[0], *places)
        self._send(HTTPStatus.OK, "application/json", json.dumps(rounds, separators=(",", ":"), allow_nan=False))

    def _is_asked_by_name(self) -> bool:
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in HOSTS
        except ValueError:
            return False

    def _send(self, status: HTTPStatus, kind: str, text: str, policy: str = "default-src 'none'") -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", f"{policy}; frame-ancestors 'none'")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal is for the address and for what goes wrong."""
