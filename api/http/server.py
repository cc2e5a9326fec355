"""The HTTP server's limits: size of the head, time for head and body, number of connections.

    nothing ─► head ─► body ─► response ─► idle ─► head …
               10 s    30 s    the app's   80 s
               64 kB   the app's limit

A connection without a request, idle or before the end of its head, is closed early if its place is
needed. The head must name one host, so that no proxy in front reads another one.

uvicorn's protocol with httptools has no limit for the request line and the headers, and a time
limit for idle connections only. Its protocol with h11 limits only the size, and costs 65 µs more
CPU for each request; this one costs 2 µs.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn, Protocol

from httptools import HttpParserError, HttpParserInvalidURLError, parse_url
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.errors import respond

LARGEST_HEAD_BYTES = 65_536
MOST_HEADERS = 100
# Bytes of a chunked body that are not its content: in all, and for each byte of the content. A
# chunk of one byte takes five.
LARGEST_FRAMING_BYTES, MOST_FRAMING_EACH = 65_536, 8
HEAD_S = 10.0
BODY_S = 30.0
# Seconds after which a client that does not read the response is disconnected.
UNREAD_S = 60.0
# Longer than load balancers keep an idle connection (75 s or less), so that they close it first.
IDLE_S = 80
# The same while more than CROWDED of the connections are open.
CROWDED, CROWDED_IDLE_S = 0.75, 5
# Seconds that a client has to read a refusal before the connection is reset.
LINGER_S = 1.0
RETRY_AFTER_S = 5

HEAD, BODY = "head", "body"
TOO_LARGE = (
    f"The request line and the headers are larger than {LARGEST_HEAD_BYTES} bytes, or more than "
    f"{MOST_HEADERS} headers. Send long values in the body."
)
TOO_MUCH_FRAMING = "The chunks of the body have far more extensions than content. Leave them out."
TOO_SLOW = {
    HEAD: f"The request line and the headers took longer than {HEAD_S:.0f} s.",
    BODY: f"The body took longer than {BODY_S:.0f} s.",
}
TOO_MANY = (
    "Too many requests in progress on connections of this server or of your address. Try again "
    "shortly. Behind a reverse proxy, set MEMLANE_TRUSTED_PROXIES to its address."
)
ONE_HOST = "Send one Host header, such as `Host: memory.example.com`, and HTTP/1.0 or 1.1."
BAD_TARGET = "The request line must name a path, or an http or https URL without credentials."
HOST = re.compile(rb"[A-Za-z0-9._~%-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")


class Closable(Protocol):
    """A connection that `Peers` can close."""

    def make_room(self) -> None:
        """Close the connection, which has no request."""


class Peers:
    """Open connections of one server by address, in the order in which they last had a request.

    `most_of_one`: limit of one address, unless it is `exempt`. A new connection beyond a limit
    takes the place of the one that has waited longest for a request: of the same address beyond
    its limit, of any address beyond `most`.
    """

    def __init__(
        self, most: int, most_of_one: int, exempt: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._exempt = exempt
        self._addresses: dict[Closable, str] = {}
        self._open: defaultdict[str, int] = defaultdict(int)
        # Ordered sets: the longest waiting connection comes first.
        self._waiting: dict[Closable, None] = {}
        self._waiting_of: defaultdict[str, dict[Closable, None]] = defaultdict(dict)

    def admit(self, connection: Closable, address: str) -> bool:
        """Count a connection that waits for its first request. False if no place can be made.

        A refused connection counts until it is closed, and is closed before others for a next one.
        """
        self._addresses[connection] = address
        self._open[address] += 1
        while self._has_too_many(address) and self._close_first(self._waiting_of.get(address)):
            pass
        while self.total() > self._most and self._close_first(self._waiting):
            pass
        self.waits(connection)
        return not self._has_too_many(address) and self.total() <= self._most

    def _has_too_many(self, address: str) -> bool:
        return self._open[address] > self._most_of_one and not self._exempt(address)

    def total(self) -> int:
        """Number of open connections."""
        return len(self._addresses)

    def is_crowded(self) -> bool:
        """True if idle connections must close early."""
        return self.total() > CROWDED * self._most

    def waits(self, connection: Closable) -> None:
        """Note that the connection has no request."""
        if (address := self._addresses.get(connection)) is not None:
            self._waiting[connection] = None
            self._waiting_of[address][connection] = None

    def works(self, connection: Closable) -> None:
        """Note that the connection has a request: it keeps its place."""
        if connection not in self._waiting:
            return
        del self._waiting[connection]
        address = self._addresses[connection]
        del self._waiting_of[address][connection]
        if not self._waiting_of[address]:
            del self._waiting_of[address]

    def leave(self, connection: Closable) -> None:
        """Count the connection as closed; once more changes nothing."""
        self.works(connection)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def _close_first(self, waiting: Mapping[Closable, None] | None) -> bool:
        """Close the connection that has waited longest. False if none waits."""
        longest = next(iter(waiting or ()), None)
        if longest is None:
            return False
        self.leave(longest)
        longest.make_room()
        return True


class LimitedHttp(HttpToolsProtocol):
    """uvicorn's protocol with the limits above. `peers`: set by `protocol`."""

    peers: Peers
    head_s, body_s, unread_s, linger_s = HEAD_S, BODY_S, UNREAD_S, LINGER_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaits: str | None = HEAD
        self._timed: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        # Pieces of the body of one read, and what the bodies of this request are framed with.
        self._pieces: list[bytes] = []
        self._body_bytes = self._framed_bytes = 0
        self._refused = False
        self._refusal: tuple[int, str] | None = None

    # ── connection ───────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection and start the deadline of its first head, or refuse it."""
        super().connection_made(transport)
        if self.peers.admit(self, self.client[0] if self.client else ""):
            self._watch(HEAD)
        else:
            self._refuse(503, TOO_MANY, **{"Retry-After": str(RETRY_AFTER_S)})

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection and its timers."""
        self.peers.leave(self)
        self._watch(None)
        self._read_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, up to the limit of a head."""
        while data and not self._refused and not self.transport.is_closing():
            room = len(data) if self._awaits == BODY else LARGEST_HEAD_BYTES - self._head_bytes
            if not room:
                self._refuse(431, TOO_LARGE)
                break
            if self._awaits == BODY:
                self._framed_bytes += len(data)
            else:
                self._head_bytes += len(data[:room])
            super().data_received(data[:room])
            self._flush()
            if self._awaits == BODY and self._is_mostly_framing():
                self._end(413, TOO_MUCH_FRAMING)
                break
            data = data[room:]
        if not self._refused:
            self._watch(self._awaits)

    # ── parser ───────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        self._awaits = HEAD
        self._body_bytes = self._framed_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header. Fields behind a chunked body are ignored: they could replace headers."""
        if self._awaits == BODY:
            return
        if len(self.headers) >= MOST_HEADERS:
            self._refusal = 431, TOO_LARGE
            raise HttpParserError(TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check target and host, and expect the body."""
        self._require_host()
        self._awaits = BODY
        self.peers.works(self)
        super().on_headers_complete()

    def _require_host(self) -> None:
        """Require one valid host. The host of an absolute URL replaces that of the header."""
        if self.url[:1] not in (b"/", b"*"):
            self._set_host(self._authority())
        hosts = [value for name, value in self.headers if name == b"host"]
        version = self.parser.get_http_version()
        optional = version == "1.0" and not hosts
        if version == "0.9" or not (optional or (len(hosts) == 1 and HOST.fullmatch(hosts[0]))):
            self._invalid(ONE_HOST)

    def _authority(self) -> bytes:
        """Host and port of an absolute URL."""
        try:
            url = parse_url(self.url)
        except HttpParserInvalidURLError:
            self._invalid(BAD_TARGET)
        if (url.schema or b"").lower() not in (b"http", b"https") or url.userinfo or not url.host:
            self._invalid(BAD_TARGET)
        host: bytes = b"[%b]" % url.host if b":" in url.host else url.host
        self.url = self.url if url.path else self._with_path()
        return host if url.port is None else host + b":%d" % url.port

    def _with_path(self) -> bytes:
        """The absolute URL with the path that it leaves out."""
        origin, mark, query = self.url.partition(b"?")
        return origin + b"/" + mark + query

    def _set_host(self, host: bytes) -> None:
        given = [value for name, value in self.headers if name == b"host"]
        if len(given) == 1:
            self.headers[:] = [(n, host if n == b"host" else v) for n, v in self.headers]

    def _invalid(self, message: str) -> NoReturn:
        self._refusal = 400, message
        raise HttpParserError(message)

    def on_response_complete(self) -> None:
        """Wait for the next request, a shorter time if the server is crowded."""
        self.timeout_keep_alive = self._idle_s()
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:
            self.peers.waits(self)

    def _idle_s(self) -> int:
        usual: int = self.config.timeout_keep_alive
        return min(usual, CROWDED_IDLE_S) if self.peers.is_crowded() else usual

    def make_room(self) -> None:
        """Close the connection, which has no request."""
        self._watch(None)
        self.transport.close()

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body; added one by one, many small chunks take their square."""
        self._pieces.append(body)
        self._body_bytes += len(body)

    def _flush(self) -> None:
        """Pass the pieces of the body on as one."""
        if self._pieces:
            body = b"".join(self._pieces)
            self._pieces.clear()
            super().on_body(body)

    def _is_mostly_framing(self) -> bool:
        """Tell if sizes, extensions and trailers of chunks are far more than the body in them."""
        most = LARGEST_FRAMING_BYTES + MOST_FRAMING_EACH * self._body_bytes
        return self._framed_bytes - self._body_bytes > most

    def on_message_complete(self) -> None:
        """Expect nothing until the next request."""
        self._flush()
        self._awaits, self._head_bytes = None, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed."""
        self._refuse(*(self._refusal or (400, msg)))

    # ── time ─────────────────────────────────────────────────────────────────────────────────────

    def _watch(self, part: str | None) -> None:
        """Start the deadline of a part of the request; None stops it."""
        if part == self._timed:
            return
        if self._deadline:
            self._deadline.cancel()
        self._timed, self._deadline = part, None
        if part:
            seconds = self.head_s if part == HEAD else self.body_s
            self._deadline = self.loop.call_later(seconds, self._late, part)

    def _late(self, part: str) -> None:
        self._timed = self._deadline = None
        answering = self.cycle is not None and not self.cycle.response_complete
        if self.flow.read_paused or (part == HEAD and answering):
            self._watch(part)  # the app is slow, not the client
        else:
            self._end(408, TOO_SLOW[part])

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel that deadline."""
        super().resume_writing()
        self._read_on()

    def _read_on(self) -> None:
        if self._unread:
            self._unread.cancel()
        self._unread = None

    # ── refusal ──────────────────────────────────────────────────────────────────────────────────

    def _end(self, status: int, message: str) -> None:
        """End the request: refuse it, or close the connection if its response has begun."""
        if self._awaits == BODY and self.cycle.response_started:
            self._refused = True
            self.transport.abort()
        else:
            self._refuse(status, message)

    def _refuse(self, status: HTTPStatus | int, message: str, **headers: str) -> None:
        """Send an error response, stop reading, and close the connection after LINGER_S."""
        self._refused = True
        self._watch(None)
        answer = respond(status, message, **headers, Connection="close")
        lines = [name + b": " + value + b"\r\n" for name, value in answer.raw_headers]
        body = bytes(answer.body)
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", body]))
        self.flow.pause_reading()
        self.loop.call_later(self.linger_s, self.transport.abort)


def protocol(peers: Peers, **times: float) -> type[LimitedHttp]:
    """The protocol class for `uvicorn.Config(http=…)`. `times`: replace the default time limits."""
    return type("Http", (LimitedHttp,), {"peers": peers, **times})
