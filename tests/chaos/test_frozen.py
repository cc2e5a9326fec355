"""A process that freezes inside a transaction keeps a lane's row locked, and is not dead."""

from __future__ import annotations

import asyncio
import contextlib

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from pipeline.ledger.schema import lanes
from tests.support.engine import Engine

ACCEPTED_WITHIN_S = 15.0


async def test_processes_frozen_while_they_undo_keep_nobody_from_being_accepted(
    engine: Engine,
) -> None:
    """As many frozen lanes as the API has writers: a third scope's add must not wait for them."""
    frozen = ("one", "two")
    for user in frozen:
        await engine.add("I live in Berlin.", user_id=user)
    held = []
    for hint in list(engine.hints.waiting):
        connection = await engine.ledger.engine.connect()
        await connection.begin()
        lane = select(lanes.c.id).where(lanes.c.id == hint.lane_id)
        await connection.execute(lane.with_for_update())  # and here it stops
        held.append(connection)
    adds = [
        asyncio.create_task(engine.add("I moved to Oslo.", user_id=user))
        for user in (*frozen, "bystander")
    ]
    done, _ = await asyncio.wait(adds, timeout=ACCEPTED_WITHIN_S)
    for connection in held:
        with contextlib.suppress(SQLAlchemyError):  # cut off meanwhile
            await connection.close()
    await asyncio.gather(*adds)
    assert len(done) == len(adds)
