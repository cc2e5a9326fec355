"""The outbox of a process: appends, and a thread that sends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from memlane_client.errors import OutboxClosed, Rejected
from memlane_client.operations import Add
from memlane_client.outbox.journal import End, Journal
from memlane_client.outbox.locks import reset_in_child
from memlane_client.outbox.sender import Sender

# Other processes' appends and ends are read this often.
POLL_S = 0.2
POLL_FOR_TICKETS_S = 0.05
DISK_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class OutboxStatus:
    """Content of an outbox.

    `sending`: this process sends. `blocked`: the reason of its last failure, until a success.
    """

    sending: bool
    pending: int
    oldest_s: float | None
    bytes: int
    refused: int
    damaged: int
    blocked: str | None


class Outbox:
    """An outbox in `folder`, which several processes may share; one of them sends.

    `most_bytes` bounds the files; an append beyond it raises OutboxFull. The thread starts with the
    first append, and at once if the folder has files: what a killed process left is sent. A forked
    child has a thread and tickets of its own.
    """

    def __init__(
        self,
        folder: str | Path,
        connect: Callable[[], httpx.AsyncClient],
        *,
        most_bytes: int = 64_000_000,
    ) -> None:
        """`connect` makes the HTTP client of the thread, with base URL and key."""
        self._journal = Journal(Path(folder), most_bytes)
        self._connect = connect
        self._waiting: dict[str, Future[str]] = {}
        self._sender: Sender | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = False
        self._fault: str | None = None
        self._idle = threading.Condition()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        reset_in_child(self)
        if self._journal.size_bytes():
            self._start()

    def put(self, add: Add) -> Future[str]:
        """Store an add durably. The future gets the event's id, or Rejected.

        Errors: OutboxFull, OutboxClosed.
        """
        if self._closing:
            raise OutboxClosed("the client is closed")
        # An add with the key of a waiting one is the same add: both tickets get its event.
        waiting = self._waiting.get(add.key)
        future = self._waiting[add.key] = waiting or Future()
        stored = False
        try:
            self._journal.append(add)
            stored = True
        finally:
            if not stored and waiting is None:
                del self._waiting[add.key]
        self._start()
        self._notify()
        return future

    def status(self) -> OutboxStatus:
        """The content of the outbox."""
        pending = self._journal.pending()
        return OutboxStatus(
            sending=self._journal.sending,
            pending=len(pending),
            oldest_s=time.time() - pending[0].at if pending else None,
            bytes=self._journal.size_bytes(),
            refused=len(self._journal.refused()),
            damaged=self._journal.damaged,
            blocked=self._fault or (self._sender.queue.blocked if self._sender else None),
        )

    def flush(self, timeout_s: float) -> bool:
        """Wait until all adds of this process have ended; False if the time is over."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._waiting, timeout_s)

    def close(self, timeout_s: float = 0.0) -> None:
        """Flush, then stop the thread. What was not sent stays in the files."""
        if timeout_s:
            self.flush(timeout_s)
        self._closing = True
        self._notify()
        if self._thread is not None:
            self._thread.join()
        for future in list(self._waiting.values()):
            if future.set_running_or_notify_cancel():
                future.set_exception(
                    OutboxClosed("the client is closed; the add stays in the files")
                )
        self._waiting.clear()
        self._journal.close()

    def after_fork(self) -> None:
        """Drop the thread and the tickets of the parent, in a forked child."""
        self._waiting = {}
        self._sender = self._loop = self._thread = self._fault = None
        self._wake, self._idle = asyncio.Event(), threading.Condition()
        self._starting = threading.Lock()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="memlane-outbox", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Send until the outbox is closed."""
        self._loop = asyncio.get_running_loop()
        async with self._connect() as http:
            self._sender = Sender(self._journal, http, self._ended)
            while not self._closing:
                pause_s = await self._round(self._sender)
                poll_s = POLL_FOR_TICKETS_S if self._waiting else POLL_S
                await self._wait(poll_s if pause_s is None else min(pause_s, poll_s))
        self._journal.resign()

    async def _round(self, sender: Sender) -> float | None:
        """A round of the sender. A disk that fails is a fault that the status names."""
        try:
            pause_s = await sender.step()
        except OSError as error:
            self._fault = f"the disk failed: {error}"
            return DISK_PAUSE_S
        self._fault = None
        return pause_s

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _notify(self) -> None:
        """Wake the thread. It may not run yet, or not any more: then nothing waits."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    def _ended(self, end: End) -> None:
        """Give the end of an add to its ticket."""
        future = self._waiting.pop(end.key, None)
        if future is not None and future.set_running_or_notify_cancel():
            if end.event_id is not None:
                future.set_result(end.event_id)
            else:
                future.set_exception(Rejected(end.reason or "refused", status=end.status or 0))
        if not self._waiting:
            with self._idle:
                self._idle.notify_all()
