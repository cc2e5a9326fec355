"""The HTTP server's limits: size of the head, time for head and body, number of connections.

    nothing ─► head ─► body ─► response ─► idle ─► head …
               10 s    30 s    the app's   80 s
               64 kB   the app's limit

uvicorn's protocol with httptools has no limit for the request line and the headers, and a time
limit for idle connections only. Its protocol with h11 limits only the size, and costs 65 µs more
CPU for each request; this one costs 2 µs.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from http import HTTPStatus
from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.errors import respond

LARGEST_HEAD_BYTES = 65_536
MOST_HEADERS = 100
HEAD_S = 10.0
BODY_S = 30.0
# Seconds after which a client that does not read the response is disconnected.
UNREAD_S = 60.0
# Longer than load balancers keep an idle connection (75 s or less), so that they close it first.
IDLE_S = 80
# Seconds that a client has to read a refusal before the connection is reset.
LINGER_S = 1.0
RETRY_AFTER_S = 5

HEAD, BODY = "head", "body"
TOO_LARGE = (
    f"The request line and the headers are larger than {LARGEST_HEAD_BYTES} bytes, or more than "
    f"{MOST_HEADERS} headers. Send long values in the body."
)
TOO_SLOW = {
    HEAD: f"The request line and the headers took longer than {HEAD_S:.0f} s.",
    BODY: f"The body took longer than {BODY_S:.0f} s.",
}
TOO_MANY = "Too many connections. Close idle ones, and try again shortly."


class Peers:
    """Number of open connections by address, for one server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_one = math.ceil(most / 2)
        self._open: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Count a connection. False if there are too many, in total or from this address."""
        self._open[address] += 1
        return self.total() <= self._most and self._open[address] <= self._most_of_one

    def total(self) -> int:
        """Number of open connections."""
        return self._open.total()

    def leave(self, address: str) -> None:
        """Count the connection as closed."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


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
        self._refused = False
        self._too_large = False

    # ── connection ───────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection and start the deadline of its first head, or refuse it."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        if self.peers.admit(self._address):
            self._watch(HEAD)
        else:
            self._refuse(503, TOO_MANY, **{"Retry-After": str(RETRY_AFTER_S)})

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection and its timers."""
        self.peers.leave(self._address)
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
            if self._awaits != BODY:
                self._head_bytes += len(data[:room])
            super().data_received(data[:room])
            data = data[room:]
        if not self._refused:
            self._watch(self._awaits)

    # ── parser ───────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        self._awaits = HEAD
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        if len(self.headers) >= MOST_HEADERS:
            self._too_large = True
            raise HttpParserError(TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Expect the body."""
        self._awaits = BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect nothing until the next request."""
        self._awaits, self._head_bytes = None, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed."""
        if self._too_large:
            self._refuse(431, TOO_LARGE)
        else:
            self._refuse(400, msg)

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
        elif part == BODY and self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(408, TOO_SLOW[part])

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


def protocol(most_connections: int, **times: float) -> type[LimitedHttp]:
    """The protocol class for `uvicorn.Config(http=…)`. `times`: replace the default time limits."""
    return type("Http", (LimitedHttp,), {"peers": Peers(most_connections), **times})
