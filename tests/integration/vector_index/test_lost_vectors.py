"""A vector store that lost all or most of its vectors: detected, reported and filled again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.events import EventType
from pipeline.domain.filters import parse
from pipeline.memories.delete_by_filter import DeleteRequest
from pipeline.ports import CollectionInfo
from pipeline.search.query import Query
from pipeline.search.service import SearchResult, search
from pipeline.vector_index.index import VectorIndex
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store
from tests.support.vectors_memory import InMemoryVectors

MAYA, JON = {"user_id": "maya"}, {"user_id": "jon"}


async def ask(engine: Engine, tree: object = MAYA) -> SearchResult:
    return await search(
        engine.project.id,
        Query(QUESTION, parse(tree), top_k=10, threshold=0.0),
        ledger=engine.ledger,
        embedder=engine.services.embedder,
        index=engine.services.index,
    )


def in_one_bucket(engine: Engine) -> None:
    """Put all owners into one collection."""
    services = engine.services
    index = VectorIndex(engine.vectors, engine.ledger.memory_vectors, services.embedder, buckets=1)
    engine.services = replace(services, index=index)


@pytest.mark.parametrize("tree", [MAYA, {"agent_id": "bot"}])
async def test_a_search_without_its_collection_says_that_it_is_degraded(
    engine: Engine, tree: dict[str, str]
) -> None:
    assert not (await ask(engine, tree)).degraded  # nothing was ever stored
    await store(engine, 3, 0.5, tree)
    await engine.vectors.reset()
    assert (await ask(engine, tree)).degraded


async def test_what_was_lost_is_written_again(engine: Engine) -> None:
    index = engine.services.index
    await store(engine, 3, 0.5, MAYA)
    assert await index.heal() == []
    await engine.vectors.reset()
    assert len(await index.heal()) == 1
    assert await index.catch_up() == 3
    answer = await ask(engine)
    assert (len(answer.hits), answer.degraded) == (3, False)
    assert await index.heal() == []


async def test_one_write_into_the_empty_store_does_not_hide_the_loss(engine: Engine) -> None:
    in_one_bucket(engine)
    await store(engine, 3, 0.5, MAYA)
    await engine.vectors.reset()
    await store(engine, 1, 0.5, JON)
    answer = await ask(engine)  # vectors not yet written to the index are compared in the ledger
    assert (len(answer.hits), answer.degraded) == (3, False)
    assert await engine.services.index.catch_up() == 3


async def test_a_collection_far_emptier_than_before_is_filled_again(engine: Engine) -> None:
    in_one_bucket(engine)
    index = engine.services.index
    await store(engine, 8, 0.5, MAYA)
    await index.heal()
    [name] = await engine.vectors.list_cols()
    records = await engine.vectors.list(name, where={}, limit=10)
    await engine.vectors.delete(name, [record.id for record in records[1:]])
    assert await index.heal() == [name]
    assert await index.catch_up() == 8


@pytest.mark.parametrize("kind", ["memories", "turns"])
async def test_a_large_deletion_is_no_loss(engine: Engine, kind: str) -> None:
    in_one_bucket(engine)
    source = engine.ledger.memory_vectors if kind == "memories" else engine.ledger.turn_vectors
    index = engine.services.index.of(source)
    for text in ("I like tea.", "I own a boat.", "I live in Bern."):
        await engine.add(text, user_id="maya")
    await engine.add("I work at Acme.", user_id="jon")
    await engine.drain()
    await index.catch_up()
    assert await index.heal() == []
    tree = parse({"user_id": "maya"})
    await engine.ledger.clearing.clear(
        engine.project.id, DeleteRequest(EventType.DELETE_ALL, tree, {})
    )
    await index.catch_up()
    [name] = [each for each in await engine.vectors.list_cols() if each.startswith(kind)]
    assert len(await engine.vectors.list(name, where={}, limit=10)) == 1
    assert await index.heal() == []
    assert await index.catch_up() == 0


async def test_a_missing_collection_without_memories_is_not_reported_after_healing(
    engine: Engine,
) -> None:
    index = engine.services.index
    await engine.ledger.memory_vectors.collections.note(index.collection(engine.scope()))
    assert (await ask(engine)).degraded
    await index.heal()
    assert not (await ask(engine)).degraded


@pytest.mark.parametrize("kind", ["memories", "turns"])
async def test_a_missing_collection_is_not_reported_again_if_all_its_rows_are_deleted(
    engine: Engine, kind: str
) -> None:
    """As after a restore: the ledger knows a collection that no row creates again."""
    in_one_bucket(engine)
    source = engine.ledger.memory_vectors if kind == "memories" else engine.ledger.turn_vectors
    index = engine.services.index.of(source)
    await engine.add("I like tea.", user_id="maya")
    await engine.drain()
    await index.catch_up()
    await engine.ledger.clearing.clear(
        engine.project.id, DeleteRequest(EventType.DELETE_ALL, parse(MAYA), {})
    )
    await engine.vectors.reset()
    assert len(await index.heal()) == 1
    await index.catch_up()
    assert await index.heal() == []
    assert not (await ask(engine, {"agent_id": "bot"})).degraded


async def test_a_decision_is_never_based_on_an_index_that_lacks_the_scope(engine: Engine) -> None:
    in_one_bucket(engine)
    index = engine.services.index
    await store(engine, 8, 0.5, MAYA)
    vectors = await engine.services.embedder.embed([QUESTION])
    assert len(await index.nearest_in_lane(engine.scope(), vectors, limit=5, least=8)) == 5
    [name] = await engine.vectors.list_cols()
    records = await engine.vectors.list(name, where={}, limit=10)
    await engine.vectors.delete(name, [record.id for record in records[1:]])
    with pytest.raises(StoreUnavailable):
        await index.nearest_in_lane(engine.scope(), vectors, limit=5, least=8)


class Broken(InMemoryVectors):
    """Store with one collection that does not answer, or with none that does."""

    broken: str | None = None
    away = False

    async def ping(self) -> None:
        if self.away:
            raise StoreUnavailable("away")

    async def col_info(self, name: str) -> CollectionInfo | None:
        if name == self.broken or self.away:
            raise StoreUnavailable(name)
        return await super().col_info(name)


async def test_a_collection_that_does_not_answer_hides_no_lost_one(engine: Engine) -> None:
    vectors = Broken()
    index = VectorIndex(vectors, engine.ledger.memory_vectors, engine.services.embedder, buckets=4)
    engine.services = replace(engine.services, index=index)
    for n in range(12):
        await store(engine, 1, 0.5, {"user_id": f"user{n}"})
    first, second, *_ = names = sorted(await vectors.list_cols())
    assert await index.heal() == []
    for broken, lost in ((first, second), (second, first)):
        await vectors.delete_col(lost)
        vectors.broken = broken
        with pytest.raises(StoreUnavailable, match=broken):
            await index.heal()
        vectors.broken = None
        assert await index.catch_up() > 0
        assert sorted(await vectors.list_cols()) == names
    vectors.away = True
    with pytest.raises(StoreUnavailable):
        await index.heal()
