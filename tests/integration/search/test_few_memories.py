"""A scope of few memories is compared as a whole, from the ledger: the index is not searched."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.filters import parse
from pipeline.events.progress import FEW
from pipeline.ledger.tables import memories
from pipeline.search import dense
from pipeline.search.query import Query
from pipeline.search.service import DegradedPart, SearchResult, search
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store

MAYA = {"user_id": "maya"}


async def ask(engine: Engine, question: str = QUESTION, **options: Any) -> SearchResult:
    services = engine.services
    return await search(
        engine.project.id,
        Query(question, parse(MAYA), **{"top_k": 10, "threshold": 0.0} | options),
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
        turns=engine.turns,
    )


@pytest.fixture
def down(engine: Engine) -> Engine:
    """The engine while its vector store is down."""

    async def search_down(*_: object, **__: object) -> None:
        raise StoreUnavailable("down")

    engine.vectors.search = search_down  # type: ignore[method-assign,assignment]
    return engine


async def test_memories_and_turns_are_compared_while_the_store_is_down(down: Engine) -> None:
    await down.add("I drive a Saab.")
    await down.drain()
    await down.turns.catch_up()
    answer = await ask(down, "User drives a Saab", turns=True)
    assert answer.degraded_parts == []
    assert len(answer.hits) == 2
    assert all(hit.score.signals.semantic > 0 for hit in answer.hits)


async def test_the_largest_such_scope(down: Engine) -> None:
    await store(down, FEW, 0.5, MAYA)
    await store(down, 3, 0.9, {"user_id": "jon"})
    answer = await ask(down, top_k=FEW + 10)
    assert (len(answer.hits), answer.degraded_parts) == (FEW, [])
    await store(down, 1, 0.5, MAYA)
    assert (await ask(down)).degraded_parts == [DegradedPart.MEANING]


async def test_deleted_memories_do_not_count(engine: Engine) -> None:
    await store(engine, FEW + 1, 0.5, MAYA)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(state="RETIRED"))
    await store(engine, 2, 0.5, MAYA)
    states = await engine.ledger.events.lane_states(
        engine.project.id, MAYA, embedder=engine.services.embedder.name
    )
    assert states.few


async def test_many_turns_beside_few_memories_are_compared_by_the_index(
    down: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "FEW", 2)
    await down.add("I drive a Saab.")
    await down.add("I own a hound.")
    await down.drain()
    await down.turns.catch_up()
    assert (await ask(down)).degraded_parts == []
    assert (await ask(down, turns=True)).degraded_parts == [DegradedPart.MEANING]


async def test_the_index_and_the_ledger_give_the_same_ranking(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cosine in (0.9, 0.3, 0.6, 0.1):
        await store(engine, 3, cosine, MAYA)
    from_ledger = [(hit.key, round(hit.score.total, 4)) for hit in (await ask(engine)).hits]
    monkeypatch.setattr(dense, "FEW", -1)
    from_index = [(hit.key, round(hit.score.total, 4)) for hit in (await ask(engine)).hits]
    assert len(from_ledger) == 10
    assert from_ledger == from_index
