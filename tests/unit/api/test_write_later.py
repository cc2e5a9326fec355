"""Write-behind: one write for several values, none lost at the end or during a write."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from api.write_later import WriteLater

request: ContextVar[str | None] = ContextVar("request", default=None)


class Values(WriteLater):
    """Values that are written; a write waits for `go`."""

    def __init__(self, *, after_s: float = 3_600) -> None:
        super().__init__(after_s)
        self.pending: list[int] = []
        self.written: list[list[int]] = []
        self.go = asyncio.Event()
        self.writes = asyncio.Event()

    def add(self, value: int) -> None:
        self.pending.append(value)
        self.schedule()

    async def write(self) -> None:
        values, self.pending = self.pending, []
        self.writes.set()
        await self.go.wait()
        self.written.append(values)


async def test_several_values_are_written_once() -> None:
    values = Values()
    values.go.set()
    values.add(1)
    values.add(2)
    await values.close()
    assert values.written == [[1, 2]]


async def test_a_value_that_arrives_during_a_write_is_written_next() -> None:
    values = Values(after_s=0)
    values.add(1)
    await values.writes.wait()
    values.add(2)
    values.go.set()
    await values.close()
    assert values.written == [[1], [2]]


async def test_the_end_waits_for_a_write_that_runs() -> None:
    values = Values(after_s=0)
    values.add(1)
    await values.writes.wait()
    closing = asyncio.create_task(values.close())
    await asyncio.sleep(0)
    assert not closing.done()
    values.go.set()
    await closing
    assert values.written == [[1]]


async def test_nothing_is_written_without_values() -> None:
    values = Values()
    await values.close()
    assert values.written == []


async def test_a_write_belongs_to_no_request() -> None:
    """It writes for all projects, so it must not wait for connections in the turn of one."""
    seen: list[str | None] = []

    class Seen(WriteLater):
        async def write(self) -> None:
            seen.append(request.get())

    later = Seen(after_s=0)
    request.set("first")
    later.schedule()
    await later.close()
    assert seen == [None]
