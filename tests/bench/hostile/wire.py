"""Attacks below the routes: connections, streams, slow readers, bodies and keys."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress

import httpx

from tests.bench.hostile.attacks import attack
from tests.bench.hostile.tenant import Statuses, Tenant, dumped

HOLD_S = 3.0


async def _open(tenant: Tenant, head: str, number: int, *, read: bool = True) -> Statuses:
    """Open connections, send the same bytes on each, hold them; statuses of the first lines."""
    statuses: Statuses = Statuses()
    opened = []
    for _ in range(number):
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", tenant.port, limit=2**16)
            writer.write(head.encode())
            opened.append((reader, writer))
    await asyncio.sleep(HOLD_S)
    for reader, writer in opened:
        line = b""
        if read:
            with suppress(TimeoutError, OSError, asyncio.LimitOverrunError):
                async with asyncio.timeout(1):
                    line = await reader.readline()
        statuses[int(line.split(b" ")[1]) if line.startswith(b"HTTP/") else 0] += 1
        writer.transport.abort()
    return statuses


def _head(tenant: Tenant, method: str, path: str, content: bytes = b"") -> str:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {tenant.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        + content.decode()
    )


@attack("idle-connections", "300 idle connections (N8)", expects={200, 503})
async def idle_connections(tenant: Tenant) -> Statuses:
    return await _open(tenant, _head(tenant, "GET", "/healthz"), 300)


@attack("half-requests", "200 requests whose body never comes", expects={0})
async def half_requests(tenant: Tenant) -> Statuses:
    head = _head(tenant, "POST", "/v3/memories/add/", b"{" + b" " * 900)
    return await _open(tenant, head[:-500], 200, read=False)


@attack("slow-readers", "40 pages of 4 MB that are not read", expects={200})
async def slow_readers(tenant: Tenant) -> Statuses:
    content = dumped({"user_id": "long"})
    return await _open(tenant, _head(tenant, "POST", "/v3/memories/?page_size=200", content), 40)


@attack("event-streams", "200 open event streams", expects={200})
async def event_streams(tenant: Tenant) -> Statuses:
    answer = await tenant.add("streams", [f"I like {tenant.word()}." for _ in range(200)])
    path = f"/v1/event/{answer['event_id']}/stream/"
    return await _open(tenant, _head(tenant, "GET", path), 200)


@attack("pipelining", "500 requests in one write, on 20 connections", expects={200})
async def pipelining(tenant: Tenant) -> Statuses:
    return await _open(tenant, _head(tenant, "GET", "/v1/ping/") * 500, 20)


@attack("compressed", "compressed bodies", expects={400, 415, 200, 422})
async def compressed(tenant: Tenant) -> Statuses:
    tenant.http.headers["Content-Encoding"] = "gzip"
    try:
        content = gzip.compress(b'{"a": "' + b" " * 200_000_000 + b'"}', 1)[:900_000]
        return await tenant.send("POST", "/v3/memories/add/", content, times=20)
    finally:
        del tenant.http.headers["Content-Encoding"]


@attack("large-bodies", "bodies of 30 MB", expects={413, 0})
async def large_bodies(tenant: Tenant) -> Statuses:
    return await tenant.send("POST", "/v3/memories/add/", b" " * 30_000_000, times=12)


@attack("large-headers", "requests with 100 headers of 600 bytes", expects={200, 431})
async def large_headers(tenant: Tenant) -> Statuses:
    headers = "".join(f"X-{n}: {'h' * 600}\r\n" for n in range(95))
    head = f"GET /healthz HTTP/1.1\r\nHost: a\r\n{headers}\r\n"
    return await _open(tenant, head, 100)


@attack("wrong-keys", "170 wrong keys from the same address (N11)", expects={401, 429})
async def wrong_keys(tenant: Tenant) -> Statuses:
    statuses: Statuses = Statuses()
    async with httpx.AsyncClient(base_url=tenant.url, timeout=60) as http:
        for n in range(170):
            key = {"Authorization": f"Token m0-{n:040d}"}
            statuses[(await http.get("/v1/ping/", headers=key)).status_code] += 1
    return statuses


@attack("left-searches", "60 searches whose client leaves at once", expects={0})
async def left_searches(tenant: Tenant) -> Statuses:
    content = dumped({"user_id": "words", "query": tenant.events["words"], "top_k": 1000,
                      "threshold": 0, "filter_memories": True})  # fmt: skip
    head = _head(tenant, "POST", "/v3/memories/search/", content)
    statuses: Statuses = Statuses()
    for _ in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", tenant.port)
        writer.write(head.encode())
        await writer.drain()
        writer.close()
        statuses[0] += 1
    await asyncio.sleep(HOLD_S)
    return statuses
