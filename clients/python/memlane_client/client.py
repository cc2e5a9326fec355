"""The clients: `Memlane` and `AsyncMemlane` run the same flows (operations.py)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

import httpx

from memlane_client import tickets
from memlane_client.calls import (
    CONNECT_S,
    READ_S,
    Circuit,
    Flow,
    Retries,
    drive,
    drive_async,
    timeout,
)
from memlane_client.errors import Unreachable, error_of
from memlane_client.operations import (
    AddFields,
    Api,
    Frames,
    Messages,
    SearchFields,
    event_path,
    new_add,
    parsed,
)
from memlane_client.outbox import Outbox, OutboxStatus
from memlane_client.receipts import MemoryPage, MemoryRow, Progress, Receipt, SearchAnswer
from memlane_client.tickets import RECEIPT_S, AsyncTicket, Ticket

T = TypeVar("T")

LOCAL = "http://127.0.0.1:8000"
MOST_BYTES = 64_000_000
# A stream is silent for at most 15 s: the server sends a comment then.
SILENCE_S = 60.0


class Connection:
    """URL, key, transport and outbox of a client."""

    def __init__(
        self,
        api_key: str,
        url: str = LOCAL,
        *,
        outbox: str | Path | None = None,
        most_bytes: int = MOST_BYTES,
        retries: Retries | None = None,
        timeout_s: float = READ_S,
        transport: httpx.BaseTransport | None = None,
        async_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Prepare a client; it connects with its first request.

        Args:
            api_key: key of the project, or of a user of it.
            url: base URL of Memlane.
            outbox: folder of the outbox. Without one, an add waits for the server's answer.
            most_bytes: bound of the outbox.
            retries: of calls that do not go through the outbox.
            timeout_s: of one request, beside the time that the server is asked to wait.
            transport: of the synchronous client, for tests.
            async_transport: of the asynchronous client and of the outbox, for tests.

        """
        headers = {"Authorization": f"Token {api_key}", "User-Agent": "memlane-client"}
        self._options: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "headers": headers,
            "timeout": timeout(timeout_s),
        }
        self._transport, self._async_transport = transport, async_transport
        self._api = Api(retries or Retries(), Circuit())
        self._outbox: Outbox | None = None
        if outbox is not None:
            self._outbox = Outbox(outbox, self._connect_async, most_bytes=most_bytes)

    def outbox_status(self) -> OutboxStatus | None:
        """The content of the outbox; None for a client without one."""
        return self._outbox.status() if self._outbox else None

    def _connect_async(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=self._async_transport, **self._options)


class Memlane(Connection):
    """The synchronous client. A context manager; `close` stops the outbox's thread."""

    @cached_property
    def _http(self) -> httpx.Client:
        return httpx.Client(transport=self._transport, **self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, flush_s: float = 5.0) -> None:
        """Wait up to `flush_s` seconds for the outbox, then stop. The files keep the rest."""
        if self._outbox is not None:
            self._outbox.close(flush_s)
        self._http.close()

    def add(
        self,
        messages: Messages,
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[AddFields],
    ) -> Ticket:
        """Add messages.

        With an outbox: returns once the add is on disk. Errors: OutboxFull. Without: returns once
        the server has accepted it. Errors: ApiError, Unreachable. `idempotency_key`: if the caller
        has one; two adds with the same key and content are one.
        """
        add = new_add(messages, fields, key=idempotency_key)
        if self._outbox is not None:
            return Ticket(add.key, self._outbox.put(add), self.receipt)
        return Ticket(add.key, tickets.accepted(self._run(self._api.add(add))), self.receipt)

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Wait until the server has accepted all adds of this process; False after that time."""
        return self._outbox is None or self._outbox.flush(timeout_s)

    def event(self, event_id: str, *, wait: float = 0.0) -> Receipt:
        """Read an event; the server waits up to `wait` seconds for its end."""
        return self._run(self._api.event(event_id, wait_s=wait))

    def receipt(self, event_id: str, timeout: float = RECEIPT_S) -> Receipt:
        """Wait for the end of an event. Errors: EventFailed, NotEnded."""
        return self._run(self._api.receipt(event_id, timeout_s=timeout))

    def stream(self, event_id: str) -> Iterator[Progress | Receipt]:
        """Follow an event: its changes, then its receipt. Errors: ApiError, Unreachable."""
        frames = Frames()
        with _streaming(), self._http.stream("GET", **_stream(event_id)) as response:
            if not response.is_success:
                response.read()
                _raise(response)
            for piece in response.iter_bytes():
                for name, data in frames.feed(piece):
                    yield parsed(name, data)
        frames.require_end()

    def search(
        self, query: str | Sequence[Mapping[str, Any]], **fields: Unpack[SearchFields]
    ) -> SearchAnswer:
        """Search with a question, or with a conversation whose last message is the question."""
        return self._run(self._api.search(query, fields))

    def list(self, filters: Mapping[str, Any], *, page: int = 1, size: int = 100) -> MemoryPage:
        """A page of the memories that match, newest first."""
        return self._run(self._api.page(filters, page=page, size=size))

    def get(self, memory_id: str) -> MemoryRow:
        """One memory. Errors: Missing."""
        return self._run(self._api.memory(memory_id))

    def update(self, memory_id: str, **fields: Any) -> None:
        """Change `text`, `metadata` or `expiration_date` of a memory."""
        self._run(self._api.update(memory_id, fields))

    def delete(self, memory_id: str) -> None:
        """Delete one memory. Errors: Missing."""
        self._run(self._api.delete(memory_id))

    def _run(self, flow: Flow[T]) -> T:
        return drive(flow, self._http)


class AsyncMemlane(Connection):
    """The asynchronous client. An async context manager; `close` stops the outbox's thread."""

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        return self._connect_async()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, flush_s: float = 5.0) -> None:
        """Wait up to `flush_s` seconds for the outbox, then stop. The files keep the rest."""
        if self._outbox is not None:
            await asyncio.to_thread(self._outbox.close, flush_s)
        await self._http.aclose()

    async def add(
        self,
        messages: Messages,
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[AddFields],
    ) -> AsyncTicket:
        """Add messages.

        With an outbox: returns once the add is on disk. Errors: OutboxFull. Without: returns once
        the server has accepted it. Errors: ApiError, Unreachable. `idempotency_key`: if the caller
        has one; two adds with the same key and content are one.
        """
        add = new_add(messages, fields, key=idempotency_key)
        if self._outbox is not None:
            future = await asyncio.to_thread(self._outbox.put, add)
            return AsyncTicket(add.key, future, self.receipt)
        event_id = await self._run(self._api.add(add))
        return AsyncTicket(add.key, tickets.accepted(event_id), self.receipt)

    async def flush(self, timeout_s: float = 60.0) -> bool:
        """Wait until the server has accepted all adds of this process; False after that time."""
        return self._outbox is None or await asyncio.to_thread(self._outbox.flush, timeout_s)

    async def event(self, event_id: str, *, wait: float = 0.0) -> Receipt:
        """Read an event; the server waits up to `wait` seconds for its end."""
        return await self._run(self._api.event(event_id, wait_s=wait))

    async def receipt(self, event_id: str, timeout: float = RECEIPT_S) -> Receipt:  # noqa: ASYNC109
        """Wait for the end of an event. Errors: EventFailed, NotEnded."""
        return await self._run(self._api.receipt(event_id, timeout_s=timeout))

    async def stream(self, event_id: str) -> AsyncIterator[Progress | Receipt]:
        """Follow an event: its changes, then its receipt. Errors: ApiError, Unreachable."""
        frames = Frames()
        with _streaming():
            async with self._http.stream("GET", **_stream(event_id)) as response:
                if not response.is_success:
                    await response.aread()
                    _raise(response)
                async for piece in response.aiter_bytes():
                    for name, data in frames.feed(piece):
                        yield parsed(name, data)
        frames.require_end()

    async def search(
        self, query: str | Sequence[Mapping[str, Any]], **fields: Unpack[SearchFields]
    ) -> SearchAnswer:
        """Search with a question, or with a conversation whose last message is the question."""
        return await self._run(self._api.search(query, fields))

    async def list(
        self, filters: Mapping[str, Any], *, page: int = 1, size: int = 100
    ) -> MemoryPage:
        """A page of the memories that match, newest first."""
        return await self._run(self._api.page(filters, page=page, size=size))

    async def get(self, memory_id: str) -> MemoryRow:
        """One memory. Errors: Missing."""
        return await self._run(self._api.memory(memory_id))

    async def update(self, memory_id: str, **fields: Any) -> None:
        """Change `text`, `metadata` or `expiration_date` of a memory."""
        await self._run(self._api.update(memory_id, fields))

    async def delete(self, memory_id: str) -> None:
        """Delete one memory. Errors: Missing."""
        await self._run(self._api.delete(memory_id))

    async def _run(self, flow: Flow[T]) -> T:
        return await drive_async(flow, self._http)


def _stream(event_id: str) -> dict[str, Any]:
    silence = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
    return {"url": f"{event_path(event_id)}stream/", "timeout": silence}


def _raise(response: httpx.Response) -> None:
    error = error_of(response)
    assert error is not None
    raise error


@contextmanager
def _streaming() -> Iterator[None]:
    """Raise Unreachable if the connection of a stream breaks."""
    try:
        yield
    except httpx.RequestError as error:
        raise Unreachable(f"the stream broke: {type(error).__name__}") from error
