"""Large scopes: a collection of its own, filled beside writers, and read without a filter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import delete, select, update

from pipeline.domain.errors import StoreUnavailable
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables import compactions, memories, own_collections
from pipeline.ports import VectorHit, VectorRecord
from pipeline.reindex.service import reindex
from pipeline.vector_index import large_scopes
from pipeline.vector_index.buckets import is_own
from pipeline.vector_index.index import VectorIndex
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store
from tests.support.vectors_memory import InMemoryVectors

MAYA = {"user_id": "maya"}
ROWS = 6


class Watched(InMemoryVectors):
    """Store that lists what was searched, fails on demand, and can run code during a write."""

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[tuple[str, dict[str, str | int]]] = []
        self.limits: list[int] = []
        self.writes_left: int | None = None
        self.before_write: Callable[[], Awaitable[None]] | None = None
        self.before_create: Callable[[], Awaitable[None]] | None = None

    async def search(
        self, name: str, vectors: object, *, limit: int, where: Mapping[str, str | int]
    ) -> list[list[VectorHit]]:
        self.searched.append((name, dict(where)))
        self.limits.append(limit)
        return await super().search(name, vectors, limit=limit, where=where)  # type: ignore[arg-type]

    def reach(self, records: int) -> int:
        return 100 * records

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        if is_own(name):
            if self.writes_left == 0:
                raise StoreUnavailable("killed")
            if self.writes_left is not None:
                self.writes_left -= 1
            if self.before_write is not None:
                act, self.before_write = self.before_write, None
                await act()
        await super().insert(name, records)

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        if is_own(name) and self.before_create is not None:
            act, self.before_create = self.before_create, None
            await act()
        await super().create_col(name, dimensions=dimensions, embedder=embedder)

    async def own(self) -> list[str]:
        return [name for name in await self.list_cols() if is_own(name)]


def index_of(engine: Engine, *, rows: int = ROWS) -> VectorIndex:
    """The index as a process that was just started has it."""
    source, embedder = engine.ledger.memory_vectors, engine.services.embedder
    return VectorIndex(engine.vectors, source, embedder, buckets=4, own_rows=rows)


def restarted(engine: Engine, *, rows: int = ROWS) -> VectorIndex:
    """Start the process again: it knows no state of an own collection."""
    index = index_of(engine, rows=rows)
    engine.services = replace(engine.services, index=index)
    return index


@pytest.fixture
async def store_of(engine: Engine) -> Watched:
    engine.vectors = Watched()
    restarted(engine)
    await engine.ledger.indexes.adopt(engine.services.index.name)
    return engine.vectors


async def near(engine: Engine, ids: Mapping[str, str] = MAYA, *, limit: int = 50) -> set[UUID]:
    """Ids that the index returns, read by a process that was just started."""
    [vector] = await engine.services.embedder.embed([QUESTION])
    where = {"project_id": str(engine.project.id), **ids}
    index = index_of(engine)
    return {hit.id for hit in (await index.nearest(where, vector, limit=limit)).hits}


async def active(engine: Engine, ids: Mapping[str, str] = MAYA) -> set[UUID]:
    query = select(memories.c.id).where(
        memories.c.state == "ACTIVE", *(memories.c[name] == value for name, value in ids.items())
    )
    async with engine.ledger.engine.connect() as connection:
        return set((await connection.scalars(query)).all())


async def state(engine: Engine) -> list[str]:
    async with engine.ledger.engine.connect() as connection:
        return list((await connection.scalars(select(own_collections.c.state))).all())


async def requested(engine: Engine, ids: Mapping[str, str] = MAYA, *, count: int = ROWS) -> None:
    """Store a large scope and read it once."""
    await store(engine, count, 0.5, ids)
    await engine.ledger.balance.fold()
    await near(engine, ids)


async def served(engine: Engine, ids: Mapping[str, str] = MAYA, *, count: int = ROWS) -> str:
    """Give a large scope an own collection; return its name."""
    await requested(engine, ids, count=count)
    assert await engine.services.index.fill_large() == count
    assert await state(engine) == ["SERVED"]
    assert isinstance(engine.vectors, Watched)
    [name] = await engine.vectors.own()
    return name


async def change(engine: Engine, key: UUID, **values: object) -> None:
    """Change a memory as a decision does, and write it to the index."""
    query = update(memories).where(memories.c.id == key)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(query.values(version=memories.c.version + 1, **values))
    await engine.services.index.catch_up()


async def stored(engine: Engine, name: str) -> dict[UUID, int | str]:
    records = await engine.vectors.list(name, where={}, limit=100)
    return {record.id: record.payload["version"] for record in records}


async def test_a_small_scope_has_none(engine: Engine, store_of: Watched) -> None:
    await requested(engine, count=ROWS - 1)
    assert await state(engine) == []
    assert await engine.services.index.fill_large() == 0
    assert await store_of.own() == []


async def test_a_memory_written_before_the_collection_is_created_is_in_it(
    engine: Engine, store_of: Watched
) -> None:
    """An import stores it, with a date before those that the filler reads first."""

    async def write() -> None:
        before = await active(engine)
        await store(engine, 1, 0.9, MAYA)
        [new] = await active(engine) - before
        await change(engine, new, created_at=memories.c.created_at - timedelta(days=365))

    await requested(engine)
    store_of.before_create = write
    await engine.services.index.fill_large()
    assert await state(engine) == ["SERVED"]
    assert len(await active(engine)) == ROWS + 1
    assert await near(engine) == await active(engine)


async def test_a_collection_that_cannot_be_filled_stops_no_other(
    engine: Engine, store_of: Watched
) -> None:
    async def fail() -> None:
        raise StoreUnavailable("Chroma answered 500.")

    await requested(engine)
    await requested(engine, {"user_id": "jon"})
    store_of.before_write = fail
    with pytest.raises(StoreUnavailable):
        await engine.services.index.fill_large()
    assert sorted(await state(engine)) == ["FILLING", "SERVED"]


async def test_a_large_scope_is_searched_in_its_own_collection_without_a_filter(
    engine: Engine, store_of: Watched
) -> None:
    await requested(engine)
    assert await state(engine) == ["FILLING"]
    assert all(where for _, where in store_of.searched)
    await engine.services.index.fill_large()
    [name] = await store_of.own()
    store_of.searched.clear()
    assert await near(engine) == await active(engine)
    assert store_of.searched == [(name, {})]


async def test_a_search_reads_as_many_hits_as_the_size_of_the_collection_needs(
    engine: Engine, store_of: Watched
) -> None:
    await served(engine)
    await near(engine, limit=5)
    assert store_of.limits[-1] == store_of.reach(ROWS)


async def test_a_scope_of_two_ids_is_counted_by_both(engine: Engine, store_of: Watched) -> None:
    both = {"user_id": "maya", "agent_id": "bot"}
    await store(engine, ROWS, 0.5, {"user_id": "maya"})
    await store(engine, ROWS, 0.5, {"user_id": "jon", "agent_id": "bot"})
    await requested(engine, both, count=2)
    assert await state(engine) == []
    await store(engine, ROWS, 0.5, both)
    await near(engine, both)
    assert await state(engine) == ["FILLING"]
    assert await engine.services.index.fill_large() == ROWS + 2
    store_of.searched.clear()
    assert await near(engine, both) == await active(engine, both)
    assert [where for _, where in store_of.searched] == [{}]


async def test_writes_reach_a_served_collection(engine: Engine, store_of: Watched) -> None:
    name = await served(engine)
    changed, deleted, *_ = await active(engine)
    await store(engine, 1, 0.9, MAYA)
    await change(engine, changed)
    await change(engine, deleted, state="RETIRED")
    versions = await stored(engine, name)
    assert set(versions) == await active(engine) == await near(engine)
    assert versions[changed] == 2


async def test_narrower_scopes_are_in_the_collection_of_the_user(
    engine: Engine, store_of: Watched
) -> None:
    await served(engine)
    await store(engine, 2, 0.9, {"user_id": "maya", "run_id": "r"})
    assert await near(engine) == await active(engine)
    assert len(await near(engine)) == ROWS + 2


async def test_a_decision_compares_memories_of_its_own_lane_alone(
    engine: Engine, store_of: Watched
) -> None:
    await served(engine)
    await store(engine, 2, 0.9, {"user_id": "maya", "run_id": "r"})
    [vector] = await engine.services.embedder.embed([QUESTION])
    store_of.searched.clear()
    few = await index_of(engine).nearest_in_lane(engine.scope(), [vector], limit=2)
    assert [where for _, where in store_of.searched] == [{}]
    await store(engine, 9, 0.9, {"user_id": "maya", "run_id": "r"})
    many = await index_of(engine).nearest_in_lane(engine.scope(), [vector], limit=2)
    lane = {"lane_id": str(engine.scope().lane_id)}
    assert [where for _, where in store_of.searched] == [{}, {}, lane]
    assert len(few) == len(many) == 2
    async with engine.ledger.engine.connect() as connection:
        query = select(memories.c.id).where(memories.c.lane_id == engine.scope().lane_id)
        assert {*few, *many} <= set((await connection.scalars(query)).all())


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_filler_that_is_killed_continues(
    engine: Engine, store_of: Watched, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_scopes, "A_PAGE", 2)
    await requested(engine)
    store_of.writes_left = after
    with pytest.raises(StoreUnavailable):
        await engine.services.index.fill_large()
    assert await state(engine) == ["FILLING"]
    deleted, *_ = await active(engine)
    store_of.writes_left = None
    await change(engine, deleted, state="RETIRED")
    await restarted(engine).fill_large()
    assert await state(engine) == ["SERVED"]
    [name] = await store_of.own()
    assert set(await stored(engine, name)) == await active(engine) == await near(engine)


@pytest.mark.parametrize("values", [{}, {"state": "RETIRED"}], ids=["update", "delete"])
async def test_a_change_while_its_page_is_written_is_not_overwritten(
    engine: Engine, store_of: Watched, values: dict[str, str]
) -> None:
    """The filler has read the old version, and writes it after the writer wrote the new one."""
    await requested(engine)
    changed, *_ = await active(engine)

    async def meanwhile() -> None:
        await change(engine, changed, **values)

    store_of.before_write = meanwhile
    await engine.services.index.fill_large()
    await engine.services.index.catch_up()
    [name] = await store_of.own()
    versions = await stored(engine, name)
    assert set(versions) == await active(engine)
    assert versions.get(changed, 2) == 2


async def test_a_memory_erased_while_its_page_is_written_does_not_come_back(
    engine: Engine, store_of: Watched
) -> None:
    await requested(engine)
    gone, *_ = await active(engine)

    async def meanwhile() -> None:
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(delete(memories).where(memories.c.id == gone))

    store_of.before_write = meanwhile
    await engine.services.index.fill_large()
    [name] = await store_of.own()
    assert gone not in await stored(engine, name)


async def test_rows_that_the_buckets_lack_are_written_to_both(
    engine: Engine, store_of: Watched
) -> None:
    await requested(engine)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(projected_version=0))
    await store_of.delete_col(engine.services.index.collection(engine.scope()))
    await engine.services.index.fill_large()
    bucket = engine.services.index.collection(engine.scope())
    [name] = await store_of.own()
    assert await stored(engine, bucket) == await stored(engine, name)
    assert len(await stored(engine, name)) == ROWS


async def test_an_erasure_reaches_it_and_the_list(engine: Engine, store_of: Watched) -> None:
    await served(engine)
    await erasure.erase(
        engine.project.id, OwnerKey("user", "maya"), erasures=engine.ledger.erasures
    )
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    assert await state(engine) == []
    names = await store_of.list_cols()
    assert [await stored(engine, name) for name in names] == [{}] * len(names)
    await engine.services.index.large.check()
    assert await store_of.own() == []


async def counted(engine: Engine) -> list[str]:
    """Collections with a number of deleted records."""
    async with engine.ledger.engine.connect() as connection:
        return list((await connection.scalars(select(compactions.c.name))).all())


@pytest.mark.parametrize("end", ["erased", "lost", "emptied"])
async def test_the_number_of_its_deleted_records_ends_with_it(
    engine: Engine, store_of: Watched, end: str
) -> None:
    """Its name has hashes of the ids of the scope, which an erasure must not leave."""
    name = await served(engine)
    await engine.ledger.memory_vectors.compactions.count(name, 1_000)
    assert await counted(engine) == [name]
    if end == "erased":
        await erasure.erase(
            engine.project.id, OwnerKey("user", "maya"), erasures=engine.ledger.erasures
        )
        await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    elif end == "lost":
        await store_of.delete_col(name)
        await near(engine)
    else:
        records = await store_of.list(name, where={}, limit=100)
        await store_of.delete(name, [record.id for record in records])
    await engine.services.index.large.check()
    assert await store_of.own() == []
    assert await counted(engine) == []


async def test_an_erased_run_leaves_the_collection_of_its_user(
    engine: Engine, store_of: Watched
) -> None:
    await served(engine)
    await store(engine, 2, 0.9, {"user_id": "maya", "run_id": "r"})
    await erasure.erase(engine.project.id, OwnerKey("run", "r"), erasures=engine.ledger.erasures)
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    [name] = await store_of.own()
    assert set(await stored(engine, name)) == await active(engine)
    assert await state(engine) == ["SERVED"]


async def test_a_lost_one_is_not_missed_and_is_filled_again(
    engine: Engine, store_of: Watched
) -> None:
    name = await served(engine)
    await store_of.delete_col(name)
    assert await near(engine) == await active(engine)
    assert await state(engine) == []
    await near(engine)
    assert await engine.services.index.fill_large() == ROWS
    assert await near(engine) == await active(engine)


async def test_a_writer_does_not_create_a_lost_one(engine: Engine, store_of: Watched) -> None:
    name = await served(engine)
    await store_of.delete_col(name)
    await store(engine, 1, 0.9, MAYA)
    assert await store_of.own() == []
    assert await near(engine) == await active(engine)


@pytest.mark.parametrize("left", [0, 2])
async def test_one_that_lost_most_of_its_records_is_deleted(
    engine: Engine, store_of: Watched, left: int
) -> None:
    name = await served(engine)
    await engine.services.index.large.check()
    assert await state(engine) == ["SERVED"]
    records = await store_of.list(name, where={}, limit=100)
    await store_of.delete(name, [record.id for record in records[left:]])
    await engine.services.index.large.check()
    assert (await state(engine), await store_of.own()) == ([], [])
    assert await near(engine) == await active(engine)


async def test_without_the_setting_they_are_deleted(engine: Engine, store_of: Watched) -> None:
    await served(engine)
    store_of.searched.clear()
    off = restarted(engine, rows=0)
    [vector] = await engine.services.embedder.embed([QUESTION])
    where = {"project_id": str(engine.project.id), **MAYA}
    assert len((await off.nearest(where, vector, limit=50)).hits) == ROWS
    assert all(where for _, where in store_of.searched)
    await off.large.check()
    assert (await state(engine), await store_of.own()) == ([], [])


async def test_a_repair_deletes_them(engine: Engine, store_of: Watched) -> None:
    await served(engine)
    services = engine.services
    await reindex(engine.ledger.indexes, [services.index], services.embedder, tell=lambda _: None)
    assert (await state(engine), await store_of.own()) == ([], [])


async def test_another_index_that_becomes_live_has_none_of_them(
    engine: Engine, store_of: Watched
) -> None:
    await served(engine)
    services = engine.services
    other = VectorIndex(
        engine.vectors, services.index.source, services.embedder, buckets=3, own_rows=ROWS
    )
    await reindex(engine.ledger.indexes, [other], services.embedder, tell=lambda _: None)
    await engine.ledger.indexes.adopt(other.name)
    assert await state(engine) == []
    await near(engine)  # a process that still has the index before it
    assert await state(engine) == []
    await other.large.check()
    assert await store_of.own() == []


async def test_a_scope_of_an_agent_includes_the_memories_of_its_users(
    engine: Engine, store_of: Watched
) -> None:
    bot = {"agent_id": "bot"}
    await store(engine, 2, 0.5, {"user_id": "jon", "agent_id": "bot"})
    await requested(engine, bot)
    await engine.services.index.fill_large()
    store_of.searched.clear()
    assert await near(engine, bot) == await active(engine, bot)
    assert [where for _, where in store_of.searched] == [{}]
    await erasure.erase(engine.project.id, OwnerKey("user", "jon"), erasures=engine.ledger.erasures)
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)
    [name] = await store_of.own()
    assert set(await stored(engine, name)) == await active(engine, bot)
