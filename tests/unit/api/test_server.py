"""Limits of the HTTP server over real sockets: size, duration, number of connections."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
import uvicorn
import uvloop
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from api.__main__ import LISTENERS, listeners, proxy_options
from api.__main__ import peers as configured_peers
from api.http.server import (
    CROWDED_IDLE_S,
    LARGEST_HEAD_BYTES,
    MOST_HEADERS,
    LimitedHttp,
    Peers,
    protocol,
)
from pipeline.settings import Settings
from tests.support.stack import wait_until

SOON_S = 0.3
WITHIN_S = 20.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


def usual() -> type[LimitedHttp]:
    return protocol(Peers(100, 100), linger_s=SOON_S)


def quick() -> type[LimitedHttp]:
    return protocol(Peers(100, 100), head_s=SOON_S, body_s=SOON_S, unread_s=SOON_S, linger_s=SOON_S)


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
async def serving(
    http: type[LimitedHttp], app: ASGIApp = echo, **options: Any
) -> AsyncIterator[int]:
    """Port of a server with these limits."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=http,
        lifespan="off",
        log_config=None,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        **options,
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


@pytest.mark.parametrize("size", [1, 1_000], ids=["of one byte", "large"])
async def test_a_body_in_chunks_is_read(size: int) -> None:
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    sent = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 90_000 + b"0\r\n\r\n" + GET
    async with serving(usual()) as port:
        peer = await Peer.connect(port)
        peer.writer.write(sent)
        assert await peer.answer() == (200, b"%d" % (90_000 * size))
        assert await peer.answer() == (200, b"0")
        peer.writer.close()


async def test_trailers_are_no_headers() -> None:
    async def names(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the names of the headers, once the body has ended."""
        while (await receive()).get("more_body"):
            pass
        body = b" ".join(name for name, _ in scope["headers"])
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    sent = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    async with serving(usual(), names) as port:
        trailers = b"Authorization: Token key\r\nHost: y\r\n\r\n"
        assert await ask(port, sent + trailers) == (200, b"host transfer-encoding")


@pytest.mark.parametrize(
    "chunks",
    [b"1;" + b"e" * 400_000, (b"1;" + b"e" * 500 + b"\r\nx\r\n") * 1_000],
    ids=["one extension", "many extensions"],
)
async def test_chunks_with_large_extensions_are_refused(chunks: bytes) -> None:
    async with serving(usual()) as port:
        peer = await Peer.connect(port)
        peer.writer.write(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        status, body = await peer.answer()
        assert (status, b"extensions" in body) == (413, True)
        peer.writer.close()
        assert await ask(port, GET) == (200, b"0")


async def test_a_request_in_single_bytes_is_read_where_it_comes_in_time() -> None:
    async with serving(usual()) as port:
        peer = await Peer.connect(port)
        for byte in POST + b"Content-Length: 3\r\n\r\nabc":
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        assert await peer.answer() == (200, b"3")
        peer.writer.close()


async def test_an_idle_connection_outlives_the_time_for_a_head() -> None:
    async with serving(protocol(Peers(100, 100), head_s=SOON_S)) as port:
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


async def test_a_connection_beyond_the_limit_takes_the_place_of_the_longest_idle_one() -> None:
    http = protocol(Peers(8, 4), linger_s=SOON_S)
    async with serving(http) as port:
        peers = [await Peer.connect(port) for _ in range(4)]
        for peer in peers:
            peer.writer.write(GET)
            assert (await peer.answer())[0] == 200
        peers[0].writer.write(GET)  # now the second one has been idle for longest
        assert (await peers[0].answer())[0] == 200
        assert await ask(port, GET) == (200, b"0")
        await peers[1].closed()
        for peer in (peers[0], peers[2], peers[3]):
            peer.writer.write(GET)
            assert (await peer.answer())[0] == 200
            peer.writer.close()


async def test_a_connection_gets_503_if_all_others_have_a_request_and_a_place_afterwards() -> None:
    async with serving(protocol(Peers(8, 4), linger_s=SOON_S)) as port:
        peers = [await Peer.connect(port) for _ in range(4)]
        for peer in peers:
            peer.writer.write(POST + b"Content-Length: 3\r\n\r\na")
        async with asyncio.timeout(WITHIN_S):
            while (await ask(port, GET))[0] != 503:
                pass
        status, body = await ask(port)
        assert (status, "MEMLANE_TRUSTED_PROXIES" in json.loads(body)["error"]) == (503, True)
        for peer in peers:
            peer.writer.write(b"bc")
            assert await peer.answer() == (200, b"3")
        assert await ask(port, GET) == (200, b"0")
        for peer in peers:
            peer.writer.close()


async def test_idle_connections_close_early_while_the_server_is_crowded() -> None:
    peers = Peers(4, 4)
    http = protocol(peers)
    async with serving(http) as port:
        open_ones = [await Peer.connect(port) for _ in range(4)]
        connection = next(iter(peers._waiting))
        assert isinstance(connection, LimitedHttp)
        assert connection._idle_s() == CROWDED_IDLE_S
        for peer in open_ones[1:]:
            peer.writer.close()

        async def fewer() -> bool:
            return peers.total() == 1

        await wait_until(fewer, within_s=WITHIN_S, what="three are closed")
        assert connection._idle_s() == connection.config.timeout_keep_alive
        open_ones[0].writer.close()


class Idle:
    """A connection without a request."""

    def __init__(self) -> None:
        self.closed = False

    def make_room(self) -> None:
        self.closed = True


def admitted(peers: Peers, address: str, count: int) -> list[Idle]:
    connections = [Idle() for _ in range(count)]
    assert all(peers.admit(connection, address) for connection in connections)
    return connections


def test_an_address_beyond_its_share_closes_its_own_connections_only() -> None:
    peers = Peers(20, 3)
    first, *rest = admitted(peers, "a", 3)
    other = admitted(peers, "b", 3)
    admitted(peers, "a", 1)
    assert first.closed
    assert not any(c.closed for c in rest + other)
    assert peers.total() == 6


def test_a_full_server_closes_the_longest_idle_connection_of_any_address() -> None:
    peers = Peers(6, 3)
    busy, idle, *_ = admitted(peers, "a", 3)
    peers.works(busy)
    admitted(peers, "b", 3)
    admitted(peers, "c", 1)
    assert (busy.closed, idle.closed, peers.total()) == (False, True, 6)
    for connection in list(peers._addresses):
        peers.works(connection)
    assert not peers.admit(Idle(), "d")


def test_a_connection_that_ends_gives_its_place_back_once() -> None:
    peers = Peers(10, 1)
    [connection] = admitted(peers, "a", 1)
    peers.works(connection)
    refused = Idle()
    assert not peers.admit(refused, "a")
    for _ in range(2):
        peers.leave(connection)
        peers.leave(refused)
    assert peers.total() == 0
    admitted(peers, "a", 1)


def test_refused_connections_take_no_place_from_others() -> None:
    peers = Peers(10, 2)
    busy = admitted(peers, "a", 2)
    for connection in busy:
        peers.works(connection)
    refused = [Idle() for _ in range(5)]
    assert not any(peers.admit(connection, "a") for connection in refused)
    peers.waits(busy[0])
    admitted(peers, "a", 1)
    assert [c.closed for c in refused] == [True] * 5
    assert busy[0].closed
    assert peers.total() == 2


def test_an_exempt_address_has_all_places() -> None:
    peers = Peers(10, 1, exempt=lambda address: address == "proxy")
    assert not any(connection.closed for connection in admitted(peers, "proxy", 10))


def test_the_settings_exempt_trusted_proxies_and_give_others_a_tenth() -> None:
    settings = Settings(max_connections=41, trusted_proxies="10.1.0.0/16, ::1")
    limits = configured_peers(settings)
    for address in ("10.1.2.3", "::1"):
        assert not any(connection.closed for connection in admitted(limits, address, 20))
    other = admitted(configured_peers(settings), "10.2.0.1", 6)
    assert [connection.closed for connection in other] == [True] + [False] * 5
    own = admitted(configured_peers(Settings(max_address_connections=1)), "::1", 2)
    assert [connection.closed for connection in own] == [True, False]


@pytest.mark.parametrize("proxies", ["proxy.example", "10.0.0.0/33", "*"])
def test_a_proxy_that_is_no_address_is_refused(proxies: str) -> None:
    with pytest.raises(ValidationError):
        Settings(trusted_proxies=proxies)


async def client_address(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the address of the client, as limits by address see it."""
    body = str(scope["client"][0]).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


FORWARDED = GET[:-2] + b"X-Forwarded-For: 1.1.1.1, 9.9.9.9, 10.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("proxies", "seen"),
    [
        ("", b"127.0.0.1"),
        ("10.0.0.1", b"127.0.0.1"),
        ("127.0.0.1", b"10.0.0.1"),
        ("127.0.0.0/8,10.0.0.0/8", b"9.9.9.9"),
    ],
)
async def test_the_client_is_the_right_most_address_that_is_no_trusted_proxy(
    proxies: str, seen: bytes
) -> None:
    settings = Settings(trusted_proxies=proxies)
    async with serving(usual(), client_address, **proxy_options(settings)) as port:
        assert await ask(port, FORWARDED) == (200, seen)


# ── host and target ──────────────────────────────────────────────────────────────────────────────


async def host_and_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the host, path and query that an app sees."""
    host = dict(scope["headers"]).get(b"host", b"none")
    body = b" ".join([host, scope["path"].encode(), scope["query_string"]])
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(
    ("head", "seen"),
    [
        (b"GET /a?b=c HTTP/1.1\r\nHost: x:1\r\n\r\n", b"x:1 /a b=c"),
        (b"GET http://y.example/a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", b"y.example /a b=c"),
        (b"GET https://y:8443 HTTP/1.1\r\nHost: x\r\n\r\n", b"y:8443 / "),
        (b"GET http://[::1]:80?b=c HTTP/1.1\r\nHost: x\r\n\r\n", b"[::1]:80 / b=c"),
        (b"GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", b"[::1]:8000 / "),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", b" / "),
        (b"GET / HTTP/1.0\r\n\r\n", b"none / "),
    ],
)
async def test_a_request_has_one_host(head: bytes, seen: bytes) -> None:
    async with serving(usual(), host_and_path) as port:
        assert await ask(port, head) == (200, seen)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",
        b'GET / HTTP/1.1\r\nHost: x"y\r\n\r\n',
        b"GET http://y/ HTTP/1.1\r\n\r\n",
        b"GET ftp://y/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://user:password@y/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT y:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\r\n\r\n",
    ],
    ids=[
        "no host",
        "two hosts",
        "path in host",
        "quote in host",
        "host in the URL only",
        "another scheme",
        "credentials",
        "tunnel",
        "HTTP/0.9",
    ],
)
async def test_a_request_without_one_valid_host_is_refused(head: bytes) -> None:
    async with serving(usual(), host_and_path) as port:
        status, body = await ask(port, head)
        assert (status, json.loads(body)["code"]) == (400, "INVALID_INPUT")
        assert await ask(port, GET) == (200, b"x / ")


async def test_nonsense_is_refused_as_json_with_400() -> None:
    async with serving(usual()) as port:
        status, body = await ask(port, b"\x16\x03\x01\x02\x00nonsense\r\n\r\n")
        assert status == 400
        assert json.loads(body)["code"] == "INVALID_INPUT"


def test_connections_that_come_together_are_accepted_in_few_iterations_of_the_loop() -> None:
    async def iterations(connections: int) -> int:
        loop, accepted = asyncio.get_running_loop(), []

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted.append(transport)

        listening = socket.create_server(("127.0.0.1", 0), backlog=connections)
        address = listening.getsockname()
        servers = [await loop.create_server(Accepted, sock=each) for each in listeners(listening)]
        clients = [socket.create_connection(address) for _ in range(connections)]
        count = 0
        while len(accepted) < connections:
            await asyncio.sleep(0)
            count += 1
        for transport in accepted:
            transport.close()
        for client in clients:
            client.close()
        for server in servers:
            server.close()
        return count

    assert uvloop.run(iterations(4 * LISTENERS)) <= 2 * 4
