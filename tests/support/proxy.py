"""A TCP proxy in front of PostgreSQL, which can stop forwarding, or act as a connection pooler."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from sqlalchemy import make_url

# Message in which the server tells the process id of a connection.
BACKEND_KEY = b"K" + struct.pack("!I", 12)


@dataclass
class Proxy:
    """Proxy at `url`. With `poses`, it reports its own process id, as poolers do."""

    target: tuple[str, int]
    url: str = ""
    poses: bool = False
    links: list[Link] = field(default_factory=list)

    def fall_silent(self) -> None:
        """Stop forwarding on the open connections; new connections work."""
        for link in self.links:
            link.silent = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self.poses)
        self.links.append(link)
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        ways = [
            asyncio.create_task(link.carry(reader, server_writer)),
            asyncio.create_task(link.carry(server_reader, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, server_writer):
            end.close()


@dataclass
class Link:
    poses: bool
    silent: bool = False

    async def carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if self.silent:
                    continue
                at = data.find(BACKEND_KEY)
                if self.poses and at >= 0:
                    start = at + len(BACKEND_KEY)
                    data = data[:start] + struct.pack("!I", 1) + data[start + 4 :]
                sink.write(data)
                await sink.drain()


@asynccontextmanager
async def proxied(url: str, *, poses: bool = False) -> AsyncIterator[Proxy]:
    parts = make_url(url)
    assert parts.host is not None
    assert parts.port is not None
    proxy = Proxy((parts.host, parts.port), poses=poses)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy.url = parts.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    yield proxy
    server.close()
