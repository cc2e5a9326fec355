"""Searches with filters on more than ids: matches are found among any number of other rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from pipeline.domain.filters import parse
from pipeline.search import dense
from pipeline.search.query import Query
from pipeline.search.service import SearchResult, search
from tests.support.engine import Engine
from tests.support.stored import QUESTION, store

PAST = date(2020, 1, 1)


async def ask(engine: Engine, tree: Mapping[str, Any], **options: Any) -> SearchResult:
    services = engine.services
    return await search(
        engine.project.id,
        Query(QUESTION, parse(tree), **{"top_k": 10, "threshold": 0.0} | options),
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
        turns=engine.turns,
    )


MAYA = {"user_id": "maya"}


async def test_the_few_that_match_are_found_among_thousands_that_lie_nearer(
    engine: Engine,
) -> None:
    await store(engine, 1_992, 0.8, MAYA)
    await store(engine, 8, 0.2, MAYA, metadata={"trip": "lisbon"})
    answer = await ask(engine, MAYA | {"metadata": {"trip": "lisbon"}})
    assert len(answer.hits) == 8
    assert not answer.incomplete
    assert len((await ask(engine, MAYA | {"NOT": {"metadata": {"trip": "*"}}})).hits) == 10


async def test_what_has_expired_takes_no_place_of_what_has_not(engine: Engine) -> None:
    await store(engine, 400, 0.8, MAYA, expiration_date=PAST)
    await store(engine, 2, 0.2, MAYA)
    answer = await ask(engine, MAYA)
    assert len(answer.hits) == 2
    assert not answer.incomplete
    assert len((await ask(engine, MAYA, show_expired=True)).hits) == 10


@pytest.mark.parametrize("most_exact", [dense.MOST_EXACT, 0])
async def test_either_of_two_owners_is_searched_whatever_others_hold(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, most_exact: int
) -> None:
    """With the ledger's vectors, and with the index if there are too many for an exact search."""
    monkeypatch.setattr(dense, "MOST_EXACT", most_exact)
    await store(engine, 5, 0.3, MAYA)
    await store(engine, 5, 0.2, {"agent_id": "bot"})
    await store(engine, 300, 0.8, {"user_id": "jon"})
    answer = await ask(engine, {"OR": [MAYA, {"agent_id": "bot"}]})
    assert len(answer.hits) == 10
    answer = await ask(engine, {"user_id": ["maya", "nobody"]})
    assert len(answer.hits) == 5


async def test_where_more_matches_than_is_compared_the_index_is_asked_for_more(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "MOST_EXACT", 600)
    await store(engine, 500, 0.8, MAYA)
    await store(engine, 700, 0.3, MAYA, metadata={"trip": "lisbon"})
    answer = await ask(engine, MAYA | {"metadata": {"trip": "lisbon"}})
    assert (len(answer.hits), answer.incomplete) == (10, False)
    # Vectors below the threshold need not be read.
    answer = await ask(engine, MAYA | {"metadata": {"trip": "lisbon"}}, threshold=0.5)
    assert (len(answer.hits), answer.incomplete) == (0, False)


async def test_a_search_that_gave_up_says_that_it_is_incomplete(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "MOST_EXACT", 300)
    await store(engine, 500, 0.8, MAYA)
    await store(engine, 301, 0.3, MAYA, metadata={"trip": "lisbon"})
    assert (await ask(engine, MAYA | {"metadata": {"trip": "lisbon"}})).incomplete
    assert not (await ask(engine, MAYA)).incomplete


async def test_a_scope_that_was_read_whole_is_not_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def again(*_: object, **__: object) -> dense.DenseHits:
        raise AssertionError("the index had left nothing out")

    monkeypatch.setattr("pipeline.search.service.widened", again)
    await store(engine, 3, 0.5, MAYA)
    assert len((await ask(engine, MAYA)).hits) == 3
