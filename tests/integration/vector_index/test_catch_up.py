"""Stale vectors: writes to several collections, and searches beside very many of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import func, select, text

from pipeline import telemetry
from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.filters import parse
from pipeline.ledger.tables import memories
from pipeline.ports import VectorRecord
from pipeline.search import dense
from pipeline.search.query import Query
from pipeline.search.service import DegradedPart, SearchResult, search
from pipeline.vector_index import index as vector_index
from pipeline.vector_index.index import VectorIndex
from tests.support.embedder_hash import DIMENSIONS
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store
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


def writes_failed() -> float:
    """Value of the counter."""
    [family] = telemetry.vector_writes_failed.collect()
    return next(s.value for s in family.samples if s.name.endswith("_total"))


class OneBroken(InMemoryVectors):
    """Store that answers, but not for its first collection."""

    first: str | None = None

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        self.first = self.first or name
        if name == self.first:
            raise StoreUnavailable("Chroma answered 500.")
        await super().insert(name, records)


async def test_a_collection_that_fails_keeps_no_other_from_being_written(engine: Engine) -> None:
    for user in USERS:
        await engine.add("I like jazz.", user_id=user)
    await engine.drain()
    index, broken = engine.services.index, OneBroken()
    fragile = VectorIndex(broken, index.source, engine.services.embedder, buckets=64)
    before = writes_failed()
    with pytest.raises(StoreUnavailable):
        await fragile.catch_up()
    assert writes_failed() == before + 1
    records = [await broken.list(name, where={}, limit=10) for name in await broken.list_cols()]
    written = sum(map(len, records))
    assert written > 1
    assert await stale(engine) == len(USERS) - written


async def test_a_stored_vector_of_another_length_is_computed_again(engine: Engine) -> None:
    """As earlier releases stored it: the store refuses it, and nothing can be compared with it."""
    await store(engine, 2, 0.5, {"user_id": "maya"})
    async with engine.ledger.engine.begin() as connection:
        [odd] = (await connection.scalars(select(memories.c.id).limit(1))).all()
        short = "UPDATE memories SET embedding = substring(embedding FOR 128) WHERE id = :odd"
        await connection.execute(text(short), {"odd": odd})
        await connection.execute(text("UPDATE memories SET projected_version = 0"))
    assert await engine.services.index.catch_up() == 2
    async with engine.ledger.engine.connect() as connection:
        lengths = await connection.scalars(select(func.octet_length(memories.c.embedding)))
        assert set(lengths) == {4 * DIMENSIONS}
    assert len((await searched(engine)).hits) == 2


async def searched(engine: Engine) -> SearchResult:
    services = engine.services
    query = Query(QUESTION, parse({"user_id": "maya"}), top_k=3, threshold=0.0)
    return await search(
        engine.project.id,
        query,
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
    )


async def test_a_scope_with_very_many_stale_vectors_is_compared_exactly_or_named_as_degraded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an import: the newest stale vectors are not the nearest ones."""
    await store(engine, 9, 0.1, {"user_id": "maya"})
    await store(engine, 1, 0.99, {"user_id": "maya"})
    before = await searched(engine)
    best = before.hits[0].key
    assert not before.degraded
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE memories SET projected_version = 0"))
        oldest = "UPDATE memories SET updated_at = updated_at - interval '1 s' WHERE id = :best"
        await connection.execute(text(oldest), {"best": best.id})
        ids = (await connection.scalars(select(memories.c.id))).all()
    for name in await engine.vectors.list_cols():
        await engine.vectors.delete(name, ids)
    monkeypatch.setattr(vector_index, "MOST_STALE", 5)
    exact = await searched(engine)
    assert exact.hits[0].key == best
    assert not exact.degraded
    monkeypatch.setattr(dense, "MOST_EXACT", 9)
    partial = await searched(engine)
    assert partial.degraded_parts == [DegradedPart.MEANING]
    assert len(partial.hits) == 3
