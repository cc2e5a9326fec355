"""Write-behind: values are collected in the process and written together some seconds later."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from contextvars import Context


class WriteLater(ABC):
    """Calls `write` once, `after_s` seconds after the first value that is not yet written.

    What is not written is lost if the process is killed.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._due = False
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def write(self) -> None:
        """Write all values. It handles its own errors."""

    def schedule(self) -> None:
        """Write soon. A value that arrives during a write is written by the next one."""
        self._due = True
        if self._task is None or self._task.done():
            # For all requests: in the context of none.
            self._task = asyncio.create_task(self._run(), context=Context())

    async def close(self) -> None:
        """Write now what is not written yet."""
        self._ending.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._due:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._after_s):
                    await self._ending.wait()
            self._due = False
            await self.write()
