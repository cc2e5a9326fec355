"""Writes of stale vectors to several collections."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import func, select

from pipeline.domain.errors import StoreUnavailable
from pipeline.ledger.tables import memories
from pipeline.ports import VectorRecord
from pipeline.vector_index.index import VectorIndex
from tests.support.engine import Engine
from tests.support.vectors_memory import InMemoryVectors

USERS = ("maya", "jon", "lea", "ana", "tom")


class OneCollection(InMemoryVectors):
    """Store that accepts writes to the first collection only."""

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        if await self.list_cols() != [name]:
            raise StoreUnavailable("full")
        await super().insert(name, records)


async def stale(engine: Engine) -> int:
    async with engine.ledger.engine.connect() as connection:
        query = select(func.count()).where(memories.c.owed)
        return int((await connection.execute(query)).scalar_one())


async def test_collections_written_before_an_error_are_recorded(engine: Engine) -> None:
    for user in USERS:
        await engine.add("I like jazz.", user_id=user)
    await engine.drain()
    index = engine.services.index
    source, embedder = index.source, engine.services.embedder
    fragile = VectorIndex(OneCollection(), source, embedder, buckets=64)
    with pytest.raises(StoreUnavailable):
        await fragile.catch_up()
    # Some of the users may share the first collection, by the hashes of their ids.
    left = await stale(engine)
    assert 0 < left < len(USERS)
    assert await index.catch_up() == left
    assert await stale(engine) == 0
