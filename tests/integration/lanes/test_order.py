"""Order of arrival: no text work stands between the arrival of an add and its commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from pipeline.domain.events import AddOptions
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.lanes.accept import Add
from pipeline.ledger.tables import events, messages
from pipeline.text.terms import terms
from tests.support.engine import Engine, build_ledger

LONG = " ".join(f"word{n} of a long text" for n in range(2_000))
WITHIN_S = 30.0


@pytest.fixture
async def busy_threads() -> AsyncIterator[Event]:
    """All threads of the process are at work until the event is set."""
    free, threads = Event(), ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(threads)
    threads.submit(free.wait)
    yield free
    free.set()


def turn(scope: Scope, text: str) -> Add:
    return Add(uuid4(), scope, [Message(Role.USER, text)], AddOptions(), 1)


async def until_stored(engine: Engine, number: int) -> None:
    """Return once this number of messages is stored."""
    count = select(func.count()).select_from(messages)
    async with asyncio.timeout(WITHIN_S):
        while True:
            async with engine.ledger.engine.connect() as connection:
                if await connection.scalar(count) == number:
                    return


async def stored(engine: Engine) -> list[tuple[str, list[str] | None]]:
    query = select(messages.c.content, messages.c.terms).order_by(messages.c.seq)
    async with engine.ledger.engine.connect() as connection:
        return [(row.content, row.terms) for row in await connection.execute(query)]


async def test_a_long_turn_is_not_overtaken_by_a_short_one_sent_to_another_process(
    engine: Engine, database_url: str, busy_threads: Event
) -> None:
    other, scope = build_ledger(database_url), engine.scope()
    long = asyncio.create_task(engine.ledger.group_commit.accept(turn(scope, LONG)))
    await until_stored(engine, 1)
    await other.group_commit.accept(turn(scope, "No, Oslo."))
    assert [(text, cut is None) for text, cut in await stored(engine)] == [
        (LONG, True),
        ("No, Oslo.", False),
    ]
    assert not long.done()
    busy_threads.set()
    await long
    assert [cut for _, cut in await stored(engine)] == [terms(LONG), terms("No, Oslo.")]
    await other.close()


async def test_the_sweeper_cuts_the_texts_of_a_process_that_ended(engine: Engine) -> None:
    await engine.add(LONG)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(messages).values(terms=None))
    await engine.ledger.term_rebuild.walk()
    assert [cut for _, cut in await stored(engine)] == [None]  # its process may be about to
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(events).values(created_at=func.now() - func.make_interval(0, 0, 0, 1))
        )
    await engine.ledger.term_rebuild.walk()
    assert [cut for _, cut in await stored(engine)] == [terms(LONG)]
