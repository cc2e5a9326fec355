"""Streams of a project: a limit of those that are open at once in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pipeline.domain.errors import Overloaded
from pipeline.domain.tenants import ProjectId

# Pages of events that one project follows. Each gets the whole page part at each change.
MOST_CONSOLE_STREAMS = 20
FOLLOWS_TOO_MANY = f"This project follows {MOST_CONSOLE_STREAMS} events already: close some pages."

# Events that one project follows over the API.
MOST_EVENT_STREAMS = 1_000
FOLLOWS_TOO_MANY_EVENTS = (
    f"This project follows {MOST_EVENT_STREAMS} events already: close some streams, or read the"
    " events with `wait`."
)

# Exports of one project. Each keeps a connection to the ledger, and a snapshot, until its end.
MOST_EXPORTS = 2
EXPORTS_TOO_MUCH = f"This project has {MOST_EXPORTS} exports under way: wait for one to end."


class StreamLimit:
    """Lets each project have at most `most` streams open. `refusal`: the text of the error."""

    def __init__(self, most: int, refusal: str, *, retry_after_s: int = 5) -> None:
        self._most = most
        self._refusal = refusal
        self._retry_after_s = retry_after_s
        self._open: Counter[ProjectId] = Counter()

    @contextmanager
    def place(self, project_id: ProjectId) -> Iterator[None]:
        """Count one stream of the project while the block runs. Errors: Overloaded."""
        if self._open[project_id] >= self._most:
            raise Overloaded(self._refusal, retry_after_s=self._retry_after_s)
        self._open[project_id] += 1
        try:
            yield
        finally:
            self._open[project_id] -= 1
            if not self._open[project_id]:
                del self._open[project_id]


class LimitedStream(StreamingResponse):
    """A stream that takes its place when it is sent, and frees it at its end.

    The first piece is read before the head is sent, so that an error of it has its own status.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        status_code: int = 200,
        *,
        place: AbstractContextManager[None],
        **options: Any,
    ) -> None:
        super().__init__(pieces, status_code, **options)
        self._pieces = pieces
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream. Errors: Overloaded, and those of the first piece."""
        with self._place:
            first = await anext(self._pieces, b"")
            self.body_iterator = _after(first, self._pieces)
            await super().__call__(scope, receive, send)


async def while_valid(
    pieces: AsyncGenerator[bytes], valid: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes]:
    """The pieces, until the key of the request is not valid: a long answer ends early then."""
    async with aclosing(pieces):
        async for piece in pieces:
            if not await valid():
                return
            yield piece


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
