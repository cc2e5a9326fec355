"""Closed-loop load generator for the accept path, on raw sockets to use little CPU itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class LoadResult:
    """Result of one run: latencies in seconds, and the number of answers other than 200."""

    latencies_s: list[float] = field(default_factory=list)
    failures: int = 0
    wall_s: float = 0.0

    def percentile_ms(self, p: float) -> float:
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, int(p * len(ordered)))]

    def summary(self) -> dict[str, float]:
        return {
            "requests": len(self.latencies_s),
            "failures": self.failures,
            "per_s": round(len(self.latencies_s) / self.wall_s, 1),
            "p50_ms": round(self.percentile_ms(0.50), 2),
            "p95_ms": round(self.percentile_ms(0.95), 2),
            "p99_ms": round(self.percentile_ms(0.99), 2),
        }


def add_request(port: int, key: str, *, user: str, text: str) -> bytes:
    body = json.dumps(
        {
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "content": "Thanks for telling me."},
            ],
            "user_id": user,
        }
    ).encode()
    return (
        f"POST /v3/memories/add/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def post_request(port: int, key: str, path: str, content: object) -> bytes:
    body = json.dumps(content).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def search_request(port: int, key: str, *, user: str, query: str) -> bytes:
    body = json.dumps({"query": query, "filters": {"user_id": user}, "top_k": 10}).encode()
    return (
        f"POST /v3/memories/search/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def closed_loop(
    port: int,
    key: str,
    *,
    callers: int,
    requests: int,
    label: str,
    users: int = 500,
    text: str | None = None,
) -> LoadResult:
    """Send adds for `users` users in rotation."""

    def request(turn: int) -> bytes:
        user = f"{label}-{turn % users}"
        return add_request(port, key, user=user, text=text or f"I like walking trail {turn}.")

    return await send_all(port, request, callers=callers, requests=requests)


async def send_all(
    port: int, request: Callable[[int], bytes], *, callers: int, requests: int
) -> LoadResult:
    """Send all requests over `callers` connections, each with one request at a time."""
    run = LoadResult()
    remaining = iter(range(requests))

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for turn in remaining:
            content = request(turn)
            started = time.perf_counter()
            writer.write(content)
            status = await reader.readuntil(b"\r\n\r\n")
            length = int(status.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            run.latencies_s.append(time.perf_counter() - started)
            run.failures += not status.startswith(b"HTTP/1.1 200")
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    run.wall_s = time.perf_counter() - started
    return run
