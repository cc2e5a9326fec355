"""Reindex: a new index is built beside the served one, and replaces it when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, func, make_url, select, text
from structlog.testing import capture_logs

from pipeline.adapters.vectors_pgvector import Pgvector
from pipeline.domain.errors import Conflict, InvalidInput, ModelRejected, StoreUnavailable
from pipeline.domain.filters import parse
from pipeline.domain.vectors import Vector
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.engine import connect
from pipeline.ledger.tables import memories, rebuilt, turn_vectors
from pipeline.migrate import add_pgvector
from pipeline.ports import VectorRecord, VectorStore
from pipeline.reindex.service import reindex
from pipeline.reindex.store import ReindexProgress
from pipeline.search.query import Query
from pipeline.search.service import search
from pipeline.stores import Ledger
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine
from tests.support.vectors_memory import InMemoryVectors

TURNS = (
    "I live in Berlin.",
    "I like jazz.",
    "I own a boat.",
    "I play the tuba.",
    "I drive a Saab.",
)


class Another(HashEmbedder):
    """Embedder with another name and other vectors."""

    @property
    def name(self) -> str:
        return "fake/another"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [vector[::-1].copy() for vector in await super().embed(texts)]


class Fragile(InMemoryVectors):
    """Store that fails after this number of writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        if not self.left:
            raise StoreUnavailable("killed")
        self.left -= 1
        await super().insert(name, records)


@pytest.fixture
async def stocked(engine: Engine) -> Engine:
    """Memories of three users, in a served index that is up to date."""
    await engine.ledger.indexes.adopt(engine.services.index.name)
    for user in ("maya", "jon", "lea"):
        await engine.add(" ".join(TURNS), user_id=user)
    await engine.drain()
    await engine.services.index.catch_up()
    await engine.turns.catch_up()
    return engine


def with_index(
    engine: Engine, store: VectorStore, embedder: HashEmbedder | None = None, *, buckets: int = 3
) -> Engine:
    """A process with other settings, on the same ledger."""
    embedder = embedder or HashEmbedder()
    index = VectorIndex(store, engine.ledger.memory_vectors, embedder, buckets=buckets)
    services = replace(engine.services, index=index, embedder=embedder, projector=Projector(index))
    return replace(engine, services=services)


async def rebuild(engine: Engine, reports: list[ReindexProgress] | None = None) -> bool:
    lines = reports if reports is not None else []
    services = engine.services
    indexes = [services.index, engine.turns]
    return await reindex(engine.ledger.indexes, indexes, services.embedder, tell=lines.append)


async def adopt(engine: Engine) -> None:
    await engine.ledger.indexes.adopt(engine.services.index.name)


async def test_another_index_may_follow_while_the_ledger_is_empty(engine: Engine) -> None:
    indexes = engine.ledger.indexes
    await indexes.adopt("of-a-start-that-failed")
    await indexes.require(engine.services.index.name)
    await adopt(engine)
    assert await indexes.live() == engine.services.index.name
    await engine.add("I live in Berlin.")
    await engine.drain()
    with pytest.raises(InvalidInput, match="reindex"):
        await indexes.adopt("another")


async def nearest(engine: Engine, text: str, user: str = "maya") -> list[tuple[UUID, float]]:
    """Hits of the index itself: ids and cosines."""
    [vector] = await engine.services.embedder.embed([text])
    where = {"project_id": str(engine.project.id), "user_id": user}
    near = await engine.services.index.nearest(where, vector, limit=10)
    return [(hit.id, round(hit.similarity, 5)) for hit in near.hits]


async def searched(engine: Engine, text: str) -> list[tuple[str, float]]:
    services = engine.services
    query = Query(text, parse({"user_id": "maya"}), top_k=10, threshold=0.0)
    answer = await search(
        engine.project.id,
        query,
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
    )
    assert not answer.degraded
    return [(hit.passage.text, round(hit.score.semantic, 5)) for hit in answer.hits]


async def heard(engine: Engine, text: str) -> list[float]:
    """Cosines of the turns that the index of turns finds."""
    [vector] = await engine.services.embedder.embed([text])
    near = await engine.turns.nearest({"project_id": str(engine.project.id)}, vector, limit=10)
    ids = [hit.id for hit in near.hits]
    assert set(await engine.ledger.turn_vectors.keys(ids)) == set(ids)
    return [round(hit.similarity, 5) for hit in near.hits]


async def stale(ledger: Ledger, table: Table = memories) -> int:
    query = select(func.count()).where(table.c.owed)
    async with ledger.engine.connect() as connection:
        return int((await connection.execute(query)).scalar_one())


# ── repair ───────────────────────────────────────────────────────────────────────────────────────


async def test_mending_a_wiped_index_warns_of_nothing(stocked: Engine) -> None:
    await stocked.vectors.reset()
    with capture_logs() as lines:
        assert not await rebuild(stocked)
    assert lines == []


async def test_a_wiped_index_is_mended_and_answers_as_before(stocked: Engine) -> None:
    before = await searched(stocked, "Which instrument?"), await nearest(stocked, "jazz")
    assert len(before[1]) == len(TURNS)
    await stocked.vectors.reset()
    with pytest.raises(StoreUnavailable):
        await nearest(stocked, "jazz")
    reports: list[ReindexProgress] = []
    assert await rebuild(stocked, reports) is False
    assert reports[-1] == ReindexProgress(18, 18)  # including the three turns
    assert (await searched(stocked, "Which instrument?"), await nearest(stocked, "jazz")) == before


async def test_a_wiped_index_is_mended_in_its_turns_too(stocked: Engine) -> None:
    before = await heard(stocked, "jazz")
    assert len(before) == 3
    await stocked.vectors.reset()
    with pytest.raises(StoreUnavailable):
        await heard(stocked, "jazz")
    await rebuild(stocked)
    assert await heard(stocked, "jazz") == before


async def test_mending_writes_only_what_is_missing_or_stale(stocked: Engine) -> None:
    name = stocked.services.index.collection(stocked.scope("maya"))
    [(lost, _), (stale, _), *_] = await nearest(stocked, "boat")
    await stocked.vectors.delete(name, [lost])
    [record] = await stocked.vectors.get(name, [stale])
    await stocked.vectors.insert(name, [replace(record, payload={**record.payload, "version": 0})])
    wrote: list[UUID] = []
    insert = stocked.vectors.insert

    async def counted(name: str, records: Sequence[VectorRecord]) -> None:
        wrote.extend(record.id for record in records)
        await insert(name, records)

    stocked.vectors.insert = counted  # type: ignore[method-assign]
    await rebuild(stocked)
    assert sorted(wrote) == sorted([lost, stale])


async def test_mending_deletes_what_the_ledger_does_not_know(stocked: Engine) -> None:
    """For example after a restore of the ledger to an earlier point."""
    stray = uuid4()
    for index in (stocked.services.index, stocked.turns):
        name = index.collection(stocked.scope("maya"))
        [known, *_] = await stocked.vectors.list(name, where={"user_id": "maya"}, limit=1)
        await stocked.vectors.insert(name, [replace(known, id=stray)])
    before = await nearest(stocked, "boat")
    assert stray in dict(before)
    await rebuild(stocked)
    assert await nearest(stocked, "boat") == [hit for hit in before if hit[0] != stray]
    name = stocked.turns.collection(stocked.scope("maya"))
    assert await stocked.vectors.get(name, [stray]) == []


async def test_what_is_erased_during_a_build_is_not_in_the_new_index(stocked: Engine) -> None:
    store = InMemoryVectors()
    moved = with_index(stocked, store)
    insert = store.insert

    async def after_an_erasure(name: str, records: Sequence[VectorRecord]) -> None:
        store.insert = insert  # type: ignore[method-assign]
        await stocked.ledger.erasures.erase(stocked.project.id, OwnerKey("user", "lea"))
        await insert(name, records)

    store.insert = after_an_erasure  # type: ignore[method-assign]
    await rebuild(moved)
    names = await store.list_cols()
    left = [record for name in names for record in await store.list(name, where={}, limit=99)]
    assert left
    assert not [record for record in left if record.payload["user_id"] == "lea"]


# ── another store, another number of buckets ─────────────────────────────────────────────────────


@pytest.mark.parametrize("buckets", [1, 7])
async def test_another_store_finds_the_same_after_the_switch(stocked: Engine, buckets: int) -> None:
    moved = with_index(stocked, InMemoryVectors(), buckets=buckets)
    before = await searched(stocked, "music"), await nearest(stocked, "jazz")
    assert await rebuild(moved) is True
    assert (await searched(stocked, "music"), await nearest(stocked, "jazz")) == before
    await adopt(moved)
    assert await stale(moved.ledger) == 0
    assert (await searched(moved, "music"), await nearest(moved, "jazz")) == before


async def test_pgvector_finds_what_the_store_before_it_found(stocked: Engine) -> None:
    await add_pgvector(stocked.ledger.engine)
    moved = with_index(stocked, Pgvector(stocked.ledger.engine), buckets=1)
    before = await searched(stocked, "music")
    await rebuild(moved)
    await adopt(moved)
    assert await searched(moved, "music") == before
    assert len(await nearest(moved, "jazz")) == len(TURNS)


async def test_the_old_index_is_served_until_the_new_one_is_whole(stocked: Engine) -> None:
    moved = with_index(stocked, Fragile(writes=0))
    before = await searched(stocked, "music")
    with pytest.raises(StoreUnavailable):
        await rebuild(moved)
    assert await searched(stocked, "music") == before
    with pytest.raises(InvalidInput, match="Run `make reindex`"):
        await adopt(moved)
    assert await stocked.ledger.indexes.live() == stocked.services.index.name


async def test_a_build_that_was_killed_goes_on_where_it_was(
    stocked: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.reindex.service.AT_ONCE", 2)
    store = Fragile(writes=4)
    moved = with_index(stocked, store, buckets=1)
    with pytest.raises(StoreUnavailable):
        await rebuild(moved)
    async with stocked.ledger.engine.connect() as connection:
        count = (await connection.execute(select(func.count()).select_from(rebuilt))).scalar_one()
    assert count == 8
    store.left = 99
    reports: list[ReindexProgress] = []
    await rebuild(moved, reports)
    assert 99 - store.left == 6  # for the seven missing memories and the three turns
    assert reports[-1] == ReindexProgress(18, 18)  # including the three turns


async def test_a_write_during_a_rebuild_reaches_both_indexes(stocked: Engine) -> None:
    store = InMemoryVectors()
    moved = with_index(stocked, store)
    await rebuild(moved)
    await stocked.add("I keep bees.")
    await stocked.drain()
    gone = next(key for key, _ in await nearest(stocked, "boat"))
    await stocked.ledger.editing.retire(stocked.project.id, [gone])
    await stocked.services.index.catch_up()
    assert "User keeps bees" in [text for text, _ in await searched(stocked, "bees")]
    await adopt(moved)
    assert await stale(moved.ledger) == 2
    assert "User keeps bees" in [text for text, _ in await searched(moved, "bees")]
    await moved.services.index.catch_up()
    name = moved.services.index.collection(moved.scope("maya"))
    assert len(await store.list(name, where={"user_id": "maya"}, limit=99)) == len(TURNS)
    assert await store.get(name, [gone]) == []


async def test_a_process_from_before_the_switch_cannot_pay_a_debt(stocked: Engine) -> None:
    moved = with_index(stocked, InMemoryVectors())
    await rebuild(moved)
    await adopt(moved)
    await stocked.add("I keep bees.")
    await stocked.drain()
    await stocked.services.index.catch_up()  # writes to the old index, which is no longer read
    assert await stale(stocked.ledger) == 1
    assert await moved.services.index.catch_up() == 1
    assert await stale(stocked.ledger) == 0


# ── another embedder ─────────────────────────────────────────────────────────────────────────────


async def test_another_embedder_is_served_from_the_switch_on(stocked: Engine) -> None:
    moved = with_index(stocked, stocked.vectors, Another())
    before = await nearest(stocked, "jazz")
    await rebuild(moved)
    assert await nearest(stocked, "jazz") == before
    await adopt(moved)
    assert await stale(moved.ledger) == 0
    # mirrored vectors have the same cosines to each other
    assert await nearest(moved, "jazz") == before
    async with stocked.ledger.engine.connect() as connection:
        names = set(await connection.scalars(select(memories.c.embedder)))
    assert names == {"fake/another"}


class Refusing(Another):
    """Another embedder, which refuses some texts, such as those that are too long for it."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self._refused = refused

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if any(word in text for text in texts for word in self._refused):
            raise ModelRejected("HTTP 400")
        return await super().embed(texts)


async def test_a_text_that_the_new_embedder_refuses_is_found_by_words_and_stops_no_build(
    stocked: Engine,
) -> None:
    moved = with_index(stocked, stocked.vectors, Refusing("tuba"))
    before = await nearest(stocked, "tuba")
    assert await rebuild(moved)
    assert await nearest(stocked, "tuba") == before  # the live index lost nothing
    await adopt(moved)
    assert len(await nearest(moved, "jazz")) == len(TURNS) - 1
    hits = [text for text, _ in await searched(moved, "Who plays?")]
    assert "User plays the tuba" in hits
    assert await stale(moved.ledger) == await stale(moved.ledger, turn_vectors) == 0
    assert not await rebuild(moved)  # a repair ends, too


async def test_an_embedder_that_refuses_every_text_builds_no_index(stocked: Engine) -> None:
    moved = with_index(stocked, stocked.vectors, Refusing(""))
    with pytest.raises(InvalidInput, match="refuses all"):
        await rebuild(moved)
    await stocked.ledger.indexes.require(stocked.services.index.name)
    assert await nearest(stocked, "jazz")


async def test_turns_are_in_the_new_embedders_vectors_from_the_switch_on(stocked: Engine) -> None:
    moved = with_index(stocked, stocked.vectors, Another())
    before = await heard(stocked, "jazz")
    # no vector yet: it gets one of the new embedder
    await stocked.add("I own a bicycle.", user_id="lea")
    await rebuild(moved)
    assert await heard(stocked, "jazz") == before
    await adopt(moved)
    assert await stale(moved.ledger, turn_vectors) == 0
    assert (await heard(moved, "jazz"))[:3] == before
    assert len(await heard(moved, "jazz")) == 4


async def test_turns_that_older_processes_embed_after_a_switch_are_embedded_again(
    stocked: Engine,
) -> None:
    moved = with_index(stocked, stocked.vectors, Another())
    await rebuild(moved)
    await adopt(moved)
    await stocked.add("I own a bicycle.", user_id="lea")
    await stocked.turns.catch_up()
    assert len(await heard(moved, "bicycle")) == 3
    assert await moved.turns.refit() == 1
    await moved.turns.catch_up()
    assert len(await heard(moved, "bicycle")) == 4
    assert await stale(moved.ledger, turn_vectors) == 0


async def test_memories_that_older_processes_write_after_a_switch_are_embedded_again(
    stocked: Engine,
) -> None:
    moved = with_index(stocked, InMemoryVectors(), Another())
    await rebuild(moved)
    await adopt(moved)
    await stocked.add("I keep bees.")
    await stocked.drain()
    assert await stocked.services.index.refit() == 0  # only processes with the new embedder do this
    assert await moved.services.index.refit() == 1
    await moved.services.index.catch_up()
    assert len(await nearest(moved, "bees")) == len(TURNS) + 1


# ── locks, first index and extension ─────────────────────────────────────────────────────────────


async def test_one_reindex_at_a_time(stocked: Engine) -> None:
    async with stocked.ledger.indexes.alone():
        with pytest.raises(Conflict, match="Another reindex is running"):
            await rebuild(stocked)
    assert await rebuild(stocked) is False


async def test_a_build_for_other_settings_gives_up_the_one_before(stocked: Engine) -> None:
    first, second = InMemoryVectors(), InMemoryVectors()
    await rebuild(with_index(stocked, first, buckets=2))
    moved = with_index(stocked, second, buckets=3)
    await rebuild(moved)
    with pytest.raises(InvalidInput):
        await adopt(with_index(stocked, first, buckets=2))
    await adopt(moved)
    assert len(await nearest(moved, "jazz")) == len(TURNS)


async def test_the_first_index_needs_no_build(engine: Engine) -> None:
    await adopt(engine)
    await adopt(engine)
    assert await engine.ledger.indexes.live() == engine.services.index.name


async def test_a_postgresql_that_does_not_give_us_pgvector_is_refused_by_name(
    stocked: Engine, database_url: str
) -> None:
    owner = stocked.ledger.engine
    role = f"plain_{uuid4().hex}"
    async with owner.begin() as connection:
        await connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'"))
    url = make_url(database_url).set(username=role, password="plain")
    plain = connect(url.render_as_string(hide_password=False), pool_size=1)
    try:
        with pytest.raises(InvalidInput, match="needs the extension pgvector"):
            await add_pgvector(plain)
        await add_pgvector(owner)
        await add_pgvector(plain)  # the extension exists now
    finally:
        await plain.dispose()
        async with owner.begin() as connection:
            await connection.execute(text(f"DROP ROLE {role}"))
