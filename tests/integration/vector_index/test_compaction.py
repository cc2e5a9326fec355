"""Compaction: a collection with many deleted records is replaced, beside writers and searches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.scope import Scope
from pipeline.ledger.tables import compactions, memories
from pipeline.ports import CollectionInfo
from pipeline.vector_index import compactions as counting
from pipeline.vector_index.compaction import COPY, FORMER, Compaction
from pipeline.vector_index.compactions import Compactions
from pipeline.vector_index.index import VectorIndex
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store
from tests.support.vectors_memory import InMemoryVectors

MAYA = {"user_id": "maya"}
OLD, LIVE = 6, 4


class Chroma(InMemoryVectors):
    """Store that lists replaced collections, fails on demand, and runs code during a mirror."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []
        self.fails = False
        self.after_mirror: list[Callable[[], Awaitable[object]]] = []

    async def mirror(self, name: str, copy: str) -> None:
        if self.fails:
            raise StoreUnavailable("killed")
        await super().mirror(name, copy)
        if self.after_mirror:
            await self.after_mirror.pop(0)()

    async def replace(self, name: str, copy: str, *, former: str) -> None:
        await super().replace(name, copy, former=former)
        self.replaced.append(name)


@pytest.fixture
async def chroma(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Chroma:
    monkeypatch.setattr(counting, "COUNTED_AT_ONCE", 1)
    engine.vectors = Chroma()
    source, embedder = engine.ledger.memory_vectors, engine.services.embedder
    index = VectorIndex(engine.vectors, source, embedder, buckets=1, own_rows=0)
    engine.services = replace(engine.services, index=index)
    await engine.ledger.indexes.adopt(index.name)
    return engine.vectors


def compaction(engine: Engine, *, least: int = OLD, last_writes_s: float = 0.0) -> Compaction:
    """As another process has it."""
    assert isinstance(engine.vectors, Chroma)
    of_ledger = Compactions(engine.ledger.engine)
    return Compaction(engine.vectors, of_ledger, least=least, last_writes_s=last_writes_s)


def name_of(engine: Engine) -> str:
    return engine.services.index.collection(Scope(engine.project.id, **MAYA))


async def stored(engine: Engine) -> set[UUID]:
    return {record.id for record in await engine.vectors.list(name_of(engine), where={}, limit=99)}


async def ids(engine: Engine, state: str = "ACTIVE") -> set[UUID]:
    query = select(memories.c.id).where(memories.c.state == state)
    async with engine.ledger.engine.connect() as connection:
        return set((await connection.scalars(query)).all())


async def retire(engine: Engine, number: int) -> None:
    """Retire the oldest memories, and write that to the index."""
    oldest = select(memories.c.id).where(memories.c.state == "ACTIVE").order_by(memories.c.id)
    gone = oldest.limit(number).scalar_subquery()
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(memories)
            .where(memories.c.id.in_(gone))
            .values(state="RETIRED", version=memories.c.version + 1)
        )
    await engine.services.index.catch_up()


async def deleted(engine: Engine) -> dict[str, int]:
    async with engine.ledger.engine.connect() as connection:
        rows = await connection.execute(select(compactions.c.name, compactions.c.deleted))
        return {row.name: row.deleted for row in rows}


async def near(engine: Engine) -> set[UUID]:
    """Ids that a search finds."""
    [vector] = await engine.services.embedder.embed([QUESTION])
    where = {"project_id": str(engine.project.id), **MAYA}
    near = await engine.services.index.nearest(where, vector, limit=50)
    return {hit.id for hit in near.hits}


@pytest.fixture
async def worn(engine: Engine, chroma: Chroma) -> Chroma:
    """A collection with more deleted records than others."""
    await store(engine, OLD + LIVE, 0.5, MAYA)
    await retire(engine, OLD)
    assert await deleted(engine) == {name_of(engine): OLD}
    return chroma


async def test_a_collection_with_more_deleted_records_than_others_is_replaced(
    engine: Engine, worn: Chroma
) -> None:
    assert await compaction(engine).run() == worn.replaced == [name_of(engine)]
    assert await stored(engine) == await near(engine) == await ids(engine)
    assert await worn.list_cols() == [name_of(engine)]
    assert await deleted(engine) == {}
    assert await compaction(engine).run() == []


async def test_a_collection_that_fails_keeps_no_other_from_being_replaced(
    engine: Engine, worn: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = worn.col_info

    async def of_others(name: str) -> CollectionInfo | None:
        if name == "memories-broken":
            raise StoreUnavailable("Chroma answered 500.")
        return await info(name)

    await engine.ledger.memory_vectors.compactions.count("memories-broken", 1_000_000)
    monkeypatch.setattr(worn, "col_info", of_others)
    with pytest.raises(StoreUnavailable):
        await compaction(engine).run()
    assert worn.replaced == [name_of(engine)]


@pytest.mark.parametrize("least", [OLD, OLD + 1])
async def test_one_with_few_deleted_records_stays(
    engine: Engine, chroma: Chroma, least: int
) -> None:
    """Fewer than the others, or fewer than `least`."""
    live = OLD + 1 if least == OLD else LIVE
    await store(engine, OLD + live, 0.5, MAYA)
    await retire(engine, OLD)
    assert await compaction(engine, least=least).run() == []
    assert chroma.replaced == []


async def test_what_is_written_while_it_is_copied_is_in_the_copy(
    engine: Engine, worn: Chroma
) -> None:
    async def write() -> None:
        await store(engine, 1, 0.5, {"user_id": "maya", "run_id": "later"})
        await retire(engine, 1)

    worn.after_mirror = [write]
    await compaction(engine).run()
    assert await stored(engine) == await near(engine) == await ids(engine)
    assert len(await ids(engine)) == LIVE


async def test_rows_wait_during_the_pause_and_are_found_meanwhile(
    engine: Engine, worn: Chroma
) -> None:
    index, during = engine.services.index, list[set[UUID]]()
    changed, *_ = await ids(engine)

    async def write() -> None:
        query = update(memories).where(memories.c.id == changed)
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(query.values(version=memories.c.version + 1))
        await worn.delete(name_of(engine) + COPY, [changed])
        assert await index.catch_up() == 0
        during.append(await near(engine))

    async def nothing() -> None: ...

    worn.after_mirror = [nothing, write]
    await compaction(engine).run()
    active = await ids(engine)
    assert during == [active]
    assert await near(engine) == active
    assert await stored(engine) == active - {changed}
    assert await index.catch_up() == 1
    assert await stored(engine) == active


async def test_vectors_of_a_scope_are_not_deleted_during_the_pause(
    engine: Engine, worn: Chroma
) -> None:
    index, scope = engine.services.index, Scope(engine.project.id, **MAYA)
    pause = Compactions(engine.ledger.engine).pause
    assert await pause(name_of(engine), timedelta(minutes=1))
    embedder = engine.services.embedder.name
    with pytest.raises(StoreUnavailable, match="compacted"):
        await index.forget(scope, embedder, list(await ids(engine)))
    assert await pause(name_of(engine), None)
    await index.forget(scope, embedder, list(await ids(engine)))
    assert await stored(engine) == set()


async def test_an_interrupted_compaction_starts_again(engine: Engine, worn: Chroma) -> None:
    async def killed() -> None:
        worn.fails = True

    worn.after_mirror = [killed]
    with pytest.raises(StoreUnavailable):
        await compaction(engine).run()
    assert await Compactions(engine.ledger.engine).paused([name_of(engine)]) == set()
    assert await near(engine) == await ids(engine)
    worn.fails = False
    assert await compaction(engine).run() == [name_of(engine)]
    assert await worn.list_cols() == [name_of(engine)]


async def test_remains_of_interrupted_compactions_are_deleted(
    engine: Engine, chroma: Chroma
) -> None:
    await store(engine, LIVE, 0.5, MAYA)
    await engine.services.index.catch_up()
    for remains in (COPY, FORMER):
        await chroma.create_col(name_of(engine) + remains, dimensions=3, embedder="fake")
    await compaction(engine).run()
    assert await chroma.list_cols() == [name_of(engine)]


async def test_a_copy_is_no_part_of_the_index(engine: Engine, worn: Chroma) -> None:
    await worn.mirror(name_of(engine), name_of(engine) + COPY)
    index = engine.services.index
    assert await index.heal() == []
    assert set(await index.source.collections.known("memories")) == {name_of(engine)}


async def test_a_pause_ends_with_its_time(engine: Engine, worn: Chroma) -> None:
    of_ledger = Compactions(engine.ledger.engine)
    await of_ledger.pause(name_of(engine), timedelta(minutes=1))
    assert await of_ledger.paused([name_of(engine)]) == {name_of(engine)}
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(compactions).values(paused_until=func.now()))
    assert await of_ledger.paused([name_of(engine)]) == set()


async def test_a_collection_that_is_gone_is_forgotten(engine: Engine, worn: Chroma) -> None:
    await worn.delete_col(name_of(engine))
    assert await compaction(engine).run() == []
    assert await deleted(engine) == {}


async def test_only_one_process_compacts_at_a_time(engine: Engine, worn: Chroma) -> None:
    results: list[list[str]] = []

    async def second() -> None:
        results.append(await compaction(engine).run())

    worn.after_mirror = [second]
    assert await compaction(engine).run() == [name_of(engine)]
    assert results == [[]]
