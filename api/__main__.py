"""An API process: `python -m api`."""

from __future__ import annotations

import resource
import socket

import uvicorn

from api.app import create_app
from api.http import server as http_server
from pipeline import settings, telemetry
from pipeline.settings import Settings

# Length of the socket's accept queue, uvicorn's default.
BACKLOG = 2048
# Open files other than connections of clients: stores, logs, libraries.
OTHER_FILES = 512


def main() -> None:
    """Run one API process until it is stopped."""
    configured = settings.load()
    telemetry.configure_logs(configured.log_level, process="api")
    allow_files(configured.max_connections + OTHER_FILES)
    config = uvicorn.Config(
        create_app(configured),
        loop="uvloop",
        http=http_server.protocol(configured.max_connections),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=http_server.IDLE_S,
        timeout_graceful_shutdown=20,
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listen(configured)])
    if not server.started:
        raise SystemExit("The API did not start; the log above says why.")


def allow_files(count: int) -> None:
    """Raise the soft limit of open files to `count`, or to the hard limit if that is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(configured: Settings) -> socket.socket:
    """The socket of the API's port.

    If several API processes listen on the port, the kernel distributes connections among them.
    Errors: OSError if another program uses the port.
    """
    return socket.create_server(
        (configured.host, configured.port),
        family=socket.AF_INET6 if ":" in configured.host else socket.AF_INET,
        backlog=BACKLOG,
        reuse_port=configured.api_processes > 1,
    )


if __name__ == "__main__":
    main()
