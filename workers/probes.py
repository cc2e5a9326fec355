"""Probes of a worker or sweeper over HTTP, on `MEMLANE_PROBE_PORT`; without it there is no port.

    /livez    200 while the process answers; its watchdog ends a process that makes no progress
    /readyz   200 once the process does its work, 503 before
    /metrics  this process's metrics, or those of all that share PROMETHEUS_MULTIPROC_DIR

No answer needs the database or the broker, so an outage restarts no container. The server has a
thread of its own, and handles one request at a time.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from pipeline import telemetry
from pipeline.settings import Settings
from pipeline.webhooks.addresses import is_loopback

# Seconds after which a client that sends nothing is disconnected.
CLIENT_S = 5.0
TEXT = "text/plain; charset=utf-8"
Reply = tuple[HTTPStatus, bytes, str]


class Probes:
    """The HTTP server of one process, from construction to `close`.

    Errors: OSError if the port is taken.
    """

    def __init__(
        self, host: str, port: int, ready: Callable[[], bool], *, token: str | None = None
    ) -> None:
        """`ready`: tells if the process does its work. `token`: bearer token of /metrics."""
        self._ready = ready
        self._token = token
        self._open = is_loopback(host)
        probes = self

        class Handler(BaseHTTPRequestHandler):
            timeout = CLIENT_S
            server_version, sys_version = "memlane", ""

            def do_GET(self) -> None:
                status, body, content_type = probes.reply(
                    self.path.partition("?")[0], self.headers.get("Authorization", "")
                )
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing: probes come every few seconds."""

        self._server = HTTPServer((host, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port, also if 0 asked for a free one."""
        return self._server.server_port

    def reply(self, path: str, authorization: str) -> Reply:
        """The answer to a GET of a path."""
        match path.rstrip("/"):
            case "/livez":
                return HTTPStatus.OK, b"ok\n", TEXT
            case "/readyz" if self._ready():
                return HTTPStatus.OK, b"ok\n", TEXT
            case "/readyz":
                return HTTPStatus.SERVICE_UNAVAILABLE, b"starting\n", TEXT
            case "/metrics":
                return self._metrics(authorization)
        return HTTPStatus.NOT_FOUND, b"/livez, /readyz or /metrics\n", TEXT

    def _metrics(self, authorization: str) -> Reply:
        """The metrics; as in the API, a port that other hosts reach needs the token."""
        if self._token is None and not self._open:
            return HTTPStatus.FORBIDDEN, b"Set MEMLANE_METRICS_TOKEN.\n", TEXT
        given = authorization.partition(" ")[2].strip().encode()
        if self._token is not None and not hmac.compare_digest(given, self._token.encode()):
            return HTTPStatus.UNAUTHORIZED, b"Send MEMLANE_METRICS_TOKEN as a bearer token.\n", TEXT
        body, content_type = telemetry.exposition()
        return HTTPStatus.OK, body, content_type

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def probes_of(settings: Settings, ready: Callable[[], bool]) -> Probes | None:
    """The probes that the settings ask for, or None."""
    if settings.probe_port is None:
        return None
    token = settings.metrics_token
    return Probes(
        settings.host,
        settings.probe_port,
        ready,
        token=token.get_secret_value() if token else None,
    )
