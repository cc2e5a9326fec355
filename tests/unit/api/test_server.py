"""Limits of the HTTP server over real sockets: size, duration, number of connections."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from api.http.server import LARGEST_HEAD_BYTES, MOST_HEADERS, LimitedHttp, Peers, protocol
from tests.support.stack import wait_until

SOON_S = 0.3
WITHIN_S = 20.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


def usual() -> type[LimitedHttp]:
    return protocol(100, linger_s=SOON_S)


def quick() -> type[LimitedHttp]:
    return protocol(100, head_s=SOON_S, body_s=SOON_S, unread_s=SOON_S, linger_s=SOON_S)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body; `/large` answers more than a socket buffer holds."""
    if scope["type"] == "lifespan":
        return
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = b"x" * 50_000_000 if scope["path"] == "/large" else str(length).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(http: type[LimitedHttp]) -> AsyncIterator[int]:
    """Port of a server with these limits."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        echo,
        http=http,
        lifespan="off",
        log_config=None,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    try:
        yield listening.getsockname()[1]
    finally:
        await server.shutdown(sockets=[listening])


@dataclass
class Peer:
    """Raw TCP client, which may send invalid HTTP."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def connect(cls, port: int) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        async with asyncio.timeout(WITHIN_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            [length] = [
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ]
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def closed(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            try:
                while await self.reader.read(65_536):
                    pass
            except ConnectionError:
                pass
        self.writer.close()


async def ask(port: int, *sent: bytes) -> tuple[int, bytes]:
    peer = await Peer.connect(port)
    for part in sent:
        peer.writer.write(part)
        await peer.writer.drain()
    answer = await peer.answer()
    peer.writer.close()
    return answer


# ── valid requests ───────────────────────────────────────────────────────────────────────────────


async def test_ordinary_requests_are_answered_one_after_the_other_and_pipelined() -> None:
    async with serving(usual()) as port:
        peer = await Peer.connect(port)
        for _ in range(3):
            peer.writer.write(POST + b"Content-Length: 3\r\n\r\nabc")
            assert await peer.answer() == (200, b"3")
        peer.writer.write(GET * 5_000)  # more bytes than the limit of one head
        for _ in range(5_000):
            assert await peer.answer() == (200, b"0")
        peer.writer.close()


async def test_a_body_far_larger_than_a_head_is_read() -> None:
    body = b"x" * 900_000
    async with serving(usual()) as port:
        sent = POST + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        assert await ask(port, sent) == (200, b"900000")


async def test_a_request_in_single_bytes_is_read_where_it_comes_in_time() -> None:
    async with serving(usual()) as port:
        peer = await Peer.connect(port)
        for byte in POST + b"Content-Length: 3\r\n\r\nabc":
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        assert await peer.answer() == (200, b"3")
        peer.writer.close()


async def test_an_idle_connection_outlives_the_time_for_a_head() -> None:
    async with serving(protocol(100, head_s=SOON_S)) as port:
        peer, slow = await Peer.connect(port), await Peer.connect(port)
        peer.writer.write(GET)
        assert await peer.answer() == (200, b"0")
        # the time limit of a head has passed for both connections
        assert (await slow.answer())[0] == 408
        peer.writer.write(GET)
        assert await peer.answer() == (200, b"0")
        peer.writer.close()
        slow.writer.close()


# ── heads that are too large ─────────────────────────────────────────────────────────────────────

SPACE = b"a" * (LARGEST_HEAD_BYTES + 1)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + SPACE + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        GET[:-2] + b"X: " + SPACE + b"\r\n\r\n",
        GET[:-2] + b"X: " + SPACE,
        GET[:-2] + SPACE,
        GET[:-2] + b"a: b\r\n" * 20_000 + b"\r\n",
        GET[:-2] + b"a: b\r\n" * MOST_HEADERS + b"\r\n",
    ],
    ids=["URL", "header", "endless header", "endless name", "short headers", "one header too many"],
)
async def test_a_head_that_is_too_large_is_refused_with_431(head: bytes) -> None:
    async with serving(usual()) as port:
        status, body = await ask(port, head)
        assert status == 431
        assert "Send long values in the body" in json.loads(body)["error"]
        assert await ask(port, GET) == (200, b"0")


async def test_an_endless_header_is_refused_at_once_and_takes_no_memory() -> None:
    async with serving(usual()) as port:
        before = psutil.Process().memory_info().rss
        peer = await Peer.connect(port)
        sent: list[int] = []

        async def pump() -> None:
            peer.writer.write(GET[:-2] + b"X: ")
            while len(sent) < 300:
                peer.writer.write(b"a" * 1_000_000)
                await peer.writer.drain()
                sent.append(1_000_000)

        pumping = asyncio.create_task(pump())
        assert (await peer.answer())[0] == 431
        assert sum(sent) < 50_000_000
        pumping.cancel()
        await asyncio.wait([pumping])
        peer.writer.close()
        assert psutil.Process().memory_info().rss - before < 50_000_000


async def test_endless_blank_lines_are_no_request() -> None:
    async with serving(usual()) as port:
        assert (await ask(port, b"\r\n" * LARGEST_HEAD_BYTES))[0] == 431


# ── requests that are too slow ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sent", "part"),
    [
        (b"", "request line"),
        (b"GET / HT", "request line"),
        (GET[:-4], "request line"),
        (GET[:-2], "request line"),
        (POST + b"Content-Length: 10\r\n\r\nabc", "body"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", "body"),
        (POST + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n", "body"),
    ],
    ids=["nothing", "half a line", "half a header", "no end", "body", "chunk", "expected body"],
)
async def test_half_a_request_is_closed_in_time(sent: bytes, part: str) -> None:
    async with serving(quick()) as port:
        peer = await Peer.connect(port)
        peer.writer.write(sent)
        if b"100-continue" in sent:
            assert b"100 Continue" in await peer.reader.readuntil(b"\r\n\r\n")
        status, body = await peer.answer()
        assert status == 408
        assert part in json.loads(body)["error"]
        await peer.closed()


async def test_a_drop_now_and_then_does_not_prolong_the_time() -> None:
    async with serving(quick()) as port:
        peer = await Peer.connect(port)
        peer.writer.write(GET[:-2])
        answer = asyncio.create_task(peer.answer())
        while not answer.done():
            peer.writer.write(b"a: b\r\n" if not peer.writer.is_closing() else b"")
            await asyncio.wait([answer], timeout=SOON_S / 3)
        assert answer.result()[0] == 408
        await peer.closed()


async def test_half_a_second_request_waits_for_the_answer_to_the_first() -> None:
    async with serving(quick()) as port:
        peer = await Peer.connect(port)
        peer.writer.write(GET + GET[:-2])
        assert await peer.answer() == (200, b"0")
        assert (await peer.answer())[0] == 408
        await peer.closed()


async def test_an_answer_that_no_client_reads_is_aborted() -> None:
    http = quick()

    async def gone() -> bool:
        return http.peers.total() == 0

    async with serving(http) as port:
        peer = await Peer.connect(port)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await wait_until(gone, within_s=WITHIN_S, what="the connection is closed")
        peer.writer.close()


# ── too many connections ─────────────────────────────────────────────────────────────────────────


async def test_connections_beyond_the_limit_get_503_and_a_place_once_others_are_gone() -> None:
    async with serving(protocol(8, linger_s=SOON_S)) as port:
        peers = [await Peer.connect(port) for _ in range(4)]
        for peer in peers:
            peer.writer.write(GET)
            assert (await peer.answer())[0] == 200
        status, body = await ask(port)
        assert status == 503
        assert "Too many connections" in json.loads(body)["error"]
        for peer in peers:
            peer.writer.close()
        async with asyncio.timeout(WITHIN_S):
            while (await ask(port, GET))[0] != 200:
                pass


def test_one_address_has_half_of_the_connections_and_gets_them_back() -> None:
    peers = Peers(10)
    assert [peers.admit("a") for _ in range(6)] == [True] * 5 + [False]
    assert peers.admit("b")
    peers.leave("a")
    peers.leave("a")
    assert peers.admit("a")
    assert [peers.admit("b") for _ in range(5)] == [True] * 4 + [False]


async def test_nonsense_is_refused_as_json_with_400() -> None:
    async with serving(usual()) as port:
        status, body = await ask(port, b"\x16\x03\x01\x02\x00nonsense\r\n\r\n")
        assert status == 400
        assert json.loads(body)["code"] == "INVALID_INPUT"
