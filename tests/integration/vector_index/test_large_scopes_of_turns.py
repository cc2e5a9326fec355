"""Large scopes of turns: a collection of their own, filled lane by lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from sqlalchemy import select

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables import lanes, own_collections, turn_vectors
from pipeline.turns import vectors
from pipeline.vector_index import large_scopes
from pipeline.vector_index.index import VectorIndex
from tests.integration.vector_index.test_large_scopes import Watched
from tests.support.engine import Engine

MAYA = {"user_id": "maya"}
ROWS = 6


def turns_of(engine: Engine) -> VectorIndex:
    """The index of turns as a process that was just started has it."""
    source, embedder = engine.ledger.turn_vectors, engine.services.embedder
    return VectorIndex(engine.vectors, source, embedder, buckets=4, own_rows=ROWS)


@pytest.fixture
async def store_of(engine: Engine) -> Watched:
    engine.vectors = Watched()
    index = VectorIndex(
        engine.vectors, engine.ledger.memory_vectors, engine.services.embedder, buckets=4
    )
    engine.services = replace(engine.services, index=index)
    await engine.ledger.indexes.adopt(index.name)
    return engine.vectors


async def say(engine: Engine, count: int, *, run_id: str | None = None, more: int = 0) -> None:
    """Add events of one turn each, the last with further turns, and write their vectors."""
    scope = Scope(engine.project.id, user_id="maya", run_id=run_id)
    for number in range(count):
        texts = [f"I saw bird number {number}."]
        if number == count - 1:
            texts += (f"And feather {n}." for n in range(more))
        messages = [Message(Role.USER, text) for text in texts]
        await engine.send(scope, messages)
    await engine.drain()
    await turns_of(engine).catch_up()


async def near(engine: Engine, ids: Mapping[str, str] = MAYA) -> set[UUID]:
    """Ids that the index returns, read by a process that was just started."""
    [vector] = await engine.services.embedder.embed(["bird"])
    where = {"project_id": str(engine.project.id), **ids}
    near = await turns_of(engine).nearest(where, vector, limit=50)
    return {hit.id for hit in near.hits}


async def stored_turns(engine: Engine, ids: Mapping[str, str] = MAYA) -> set[UUID]:
    query = select(turn_vectors.c.id).join(lanes, lanes.c.id == turn_vectors.c.lane_id)
    query = query.where(*(lanes.c[name] == value for name, value in ids.items()))
    async with engine.ledger.engine.connect() as connection:
        return set((await connection.scalars(query)).all())


async def state(engine: Engine) -> list[str]:
    async with engine.ledger.engine.connect() as connection:
        return list((await connection.scalars(select(own_collections.c.state))).all())


async def in_own(engine: Engine, store: Watched) -> set[UUID]:
    [name] = await store.own()
    return {record.id for record in await store.list(name, where={}, limit=100)}


async def test_a_small_scope_has_none(engine: Engine, store_of: Watched) -> None:
    await say(engine, ROWS - 1)
    await near(engine)
    assert await state(engine) == []


async def test_a_large_scope_is_searched_in_its_own_collection_without_a_filter(
    engine: Engine, store_of: Watched
) -> None:
    await say(engine, 2, run_id="r")
    await say(engine, ROWS - 2)
    await near(engine)
    assert await state(engine) == ["FILLING"]
    assert await turns_of(engine).fill_large() == ROWS
    assert await state(engine) == ["SERVED"]
    store_of.searched.clear()
    assert await near(engine) == await stored_turns(engine) == await in_own(engine, store_of)
    assert [where for _, where in store_of.searched] == [{}]
    await say(engine, 1)
    assert await near(engine) == await stored_turns(engine) == await in_own(engine, store_of)


@pytest.mark.parametrize("after", range(4))
async def test_a_filler_that_is_killed_continues_in_the_same_lane(
    engine: Engine, store_of: Watched, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scopes, "A_PAGE", 2)
    monkeypatch.setattr(vectors, "LANES_AT_ONCE", 1)
    monkeypatch.setattr(vectors, "LANES_READ", 2)
    for run_id in ("a", "b", None):
        await say(engine, 3, run_id=run_id, more=3)
    await near(engine)
    store_of.writes_left = after
    with pytest.raises(StoreUnavailable):
        await turns_of(engine).fill_large()
    store_of.writes_left = None
    await turns_of(engine).fill_large()
    assert await state(engine) == ["SERVED"]
    assert await in_own(engine, store_of) == await stored_turns(engine)
    assert len(await stored_turns(engine)) == 18


async def test_an_erasure_reaches_it_and_the_list(engine: Engine, store_of: Watched) -> None:
    await say(engine, ROWS)
    await near(engine)
    await turns_of(engine).fill_large()
    await erasure.erase(
        engine.project.id, OwnerKey("user", "maya"), erasures=engine.ledger.erasures
    )
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    assert await state(engine) == []
    assert await in_own(engine, store_of) == set()
    await turns_of(engine).large.check()
    assert await store_of.own() == []
