"""An API process: `python -m api [--ready-file PATH] [--busy-file PATH] [--start-file PATH]`."""

from __future__ import annotations

import argparse
import asyncio
import math
import resource
import socket
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import uvicorn

from api.app import create_app
from api.http import server as http_server
from api.http.server import Peers
from api.standby import announce
from pipeline import bootstrap, startup, telemetry
from pipeline.cpu_thread import share_gil
from pipeline.settings import Settings

# Length of the socket's accept queue, uvicorn's default.
BACKLOG = 2048
# Listeners, each of which accepts one connection in an iteration of the event loop (libuv since
# 1.45). With one, a health check behind 200 other connections waited for 200 iterations, 0.9 s;
# with 16, 0.2 s. Source: tests/bench/hostile, search-200-at-once.
LISTENERS = 16
# Open files other than connections of clients: stores, logs, libraries.
OTHER_FILES = 512


class ListeningServer(uvicorn.Server):
    """uvicorn's server that creates one file once it listens, and one once it is busy."""

    ready_file: Path | None = None
    busy_file: Path | None = None
    announcing: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app and listen."""
        await super().startup(sockets)
        if self.started and self.ready_file:
            self.ready_file.touch()
        if self.started and self.busy_file:
            self.announcing = asyncio.create_task(announce(self.busy_file))


def main() -> None:
    """Run one API process until it is stopped."""
    parser = argparse.ArgumentParser(prog="api", description=__doc__)
    parser.add_argument("--ready-file", type=Path)
    parser.add_argument("--busy-file", type=Path, help="created once the process is busy")
    parser.add_argument("--start-file", type=Path, help="the process waits until it exists")
    arguments = parser.parse_args()
    startup.wait_for(arguments.start_file)
    share_gil()
    configured = startup.load()
    telemetry.configure_logs(configured.log_level, process="api")
    bootstrap.trace(configured, process="api")
    allow_files(configured.max_connections + OTHER_FILES)
    config = uvicorn.Config(
        create_app(configured),
        loop="uvloop",
        http=http_server.protocol(peers(configured)),
        **proxy_options(configured),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=http_server.IDLE_S,
        timeout_graceful_shutdown=20,
    )
    server = ListeningServer(config)
    server.ready_file, server.busy_file = arguments.ready_file, arguments.busy_file
    server.run(sockets=listeners(listen(configured)))
    if not server.started:
        raise SystemExit("The API did not start; the log above says why.")


def peers(configured: Settings) -> Peers:
    """Limits of connections. Many clients share the address of a trusted proxy: it has none."""
    of_address = configured.max_address_connections or math.ceil(configured.max_connections / 10)
    networks = [ip_network(proxy) for proxy in configured.trusted_proxies]

    def is_proxy(address: str) -> bool:
        return bool(networks) and any(ip_address(address) in network for network in networks)

    return Peers(configured.max_connections, of_address, is_proxy)


def proxy_options(configured: Settings) -> dict[str, Any]:
    """Uvicorn's options for the headers of trusted proxies; by default it trusts loopback."""
    proxies = list(configured.trusted_proxies)
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": proxies}


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


def listeners(listening: socket.socket) -> list[socket.socket]:
    """The socket, and duplicates of it with the same accept queue: LISTENERS in all."""
    return [listening, *(listening.dup() for _ in range(LISTENERS - 1))]


if __name__ == "__main__":
    main()
