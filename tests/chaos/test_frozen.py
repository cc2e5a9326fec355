"""A process frozen inside a transaction keeps its lane's row locked although it is not dead."""

from __future__ import annotations

import asyncio

from sqlalchemy import select

from pipeline.ledger.tables import events
from tests.support.engine import Engine, locked

# The lanes stay locked until the test releases them, or the server ends the idle transaction.
WITHIN_S = 30.0


async def test_processes_frozen_during_an_undo_do_not_stop_the_accepting_of_adds(
    engine: Engine,
) -> None:
    """With as many frozen lanes as the API has writers, another scope's adds still do not wait."""
    for user in ("one", "two"):
        await engine.add("I live in Berlin.", user_id=user)
    async with asyncio.timeout(WITHIN_S), locked(engine, "one"), locked(engine, "two"):
        mine = [
            asyncio.create_task(engine.add("I moved to Oslo.", user_id=user))
            for user in ("one", "two", "one", "two")
        ]
        for _ in range(5):
            await engine.add("I like jazz.", user_id="bystander")
        assert not any(add.done() for add in mine)
    await asyncio.gather(*mine)


async def test_the_adds_of_a_scope_keep_their_order_behind_a_lock(engine: Engine) -> None:
    texts = [f"I like dish number {n}." for n in range(6)]
    await engine.add("I live in Berlin.", user_id="one")
    async with asyncio.timeout(WITHIN_S):
        async with locked(engine, "one"):
            adds = [asyncio.create_task(engine.add(text, user_id="one")) for text in texts]
            await engine.add("I like jazz.", user_id="bystander")
            assert not any(add.done() for add in adds)
        ids = await asyncio.gather(*adds)
    query = select(events.c.id).where(events.c.id.in_(ids)).order_by(events.c.seq)
    async with engine.ledger.engine.connect() as connection:
        assert (await connection.scalars(query)).all() == ids
