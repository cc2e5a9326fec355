"""Searches by words among very many turns: the newest ones are compared."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from pipeline.domain.filters import parse
from pipeline.domain.scope import Scope
from pipeline.ledger import statements
from pipeline.ledger.byte_cache import ByteCache
from pipeline.ledger.engine import connect
from pipeline.search.store import Passages, WordHits
from pipeline.search.where import Where
from pipeline.search.words import newest_turns
from pipeline.text.terms import query_terms
from tests.support.engine import Engine
from tests.support.plans import rows_read_so_far

MOST = 4
FILL = """
    WITH lane AS (
        INSERT INTO lanes (id, project_id, user_id, accepted_seq, settled_seq, state)
        VALUES (:lane_id, :project_id, 'maya', 8000, 8000, 'IDLE') ON CONFLICT DO NOTHING
    ), event AS (
        INSERT INTO events (id, project_id, lane_id, seq, status, options, tokens, completed_at)
        SELECT gen_random_uuid(), :project_id, :lane_id, n, 'SUCCEEDED', '{"infer": true}', 1, now()
        FROM generate_series(CAST(:first AS integer), :first + 3999) n
    )
    INSERT INTO messages (lane_id, seq, ordinal, role, content, said_at, terms)
    SELECT :lane_id, n, 0, 'user', 'I like dish ' || n % 500, now() + n * interval '1 s',
        ARRAY['like', 'dish', 'no' || n % 500]
    FROM generate_series(CAST(:first AS integer), :first + 3999) n
"""


def few(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Set the number of turns that are all compared, also in compiled statements."""
    monkeypatch.setattr(newest_turns, "MOST_TURNS", most)
    monkeypatch.setattr(statements.SHAPES, "kept", ByteCache(10**6, lambda _: 1))


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that a few turns reach."""
    few(monkeypatch, MOST)


def where(engine: Engine, tree: dict[str, Any] | None = None) -> Where:
    parsed = parse(tree or {"user_id": "maya"})
    return Where.of(engine.project.id, parsed, facts=True, turns=True, expired=False)


async def hits(engine: Engine, tree: dict[str, Any] | None = None, *terms: str) -> WordHits:
    passages = Passages(engine.ledger.engine)
    words = query_terms(" ".join(terms) or "Berlin")
    return await passages.by_words(where(engine, tree), words, limit=50)


def turns(compared: WordHits) -> int:
    return sum(key.is_turn for key in compared.shares)


async def test_a_few_turns_are_all_compared(engine: Engine) -> None:
    for number in range(MOST):
        await engine.add(f"I saw Berlin {number}.")
    compared = await hits(engine)
    assert turns(compared) == MOST
    assert not compared.cut


async def test_of_very_many_turns_the_newest_are_compared_and_the_answer_says_so(
    engine: Engine,
) -> None:
    await engine.add("I saw Lisbon.")
    for number in range(MOST):
        await engine.add(f"I saw Berlin {number}.")
        await engine.add("I saw Berlin.", user_id="sam")
    compared = await hits(engine)
    assert turns(compared) == MOST
    assert compared.cut
    assert list(compared.shares.values()) == sorted(compared.shares.values(), reverse=True)
    assert not (await hits(engine, None, "lisbon")).shares
    await engine.ledger.balance.fold()
    everywhere = await hits(engine, {"user_id": "*"})
    assert turns(everywhere) == MOST
    assert everywhere.cut


async def test_memories_of_a_scope_with_very_many_turns_are_all_found(engine: Engine) -> None:
    await engine.add("I live in Lisbon.")
    await engine.drain()
    for number in range(MOST):
        await engine.add(f"I saw Berlin {number}.")
    compared = await hits(engine, None, "lisbon")
    assert [key.is_turn for key in compared.shares] == [False]
    assert compared.cut


async def test_rows_read_do_not_grow_with_the_turns(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    few(monkeypatch, 500)
    scope = Scope(engine.project.id, user_id="maya")
    single = connect(engine.ledger.engine.url.render_as_string(hide_password=False), pool_size=1)
    reads = []
    for first in (1, 4_001):
        values = {"project_id": scope.project_id, "lane_id": scope.lane_id, "first": first}
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(text(FILL), values)
            await connection.execute(text("ANALYZE messages, events, lanes"))
        passages = Passages(single)
        await passages.by_words(where(engine), ["no7", "like"], limit=50)
        before = await rows_read_so_far(single)
        compared = await passages.by_words(where(engine), ["no7", "like"], limit=50)
        reads.append(await rows_read_so_far(single) - before)
        assert turns(compared) == 50
    await single.dispose()
    assert reads[1] < 1.2 * reads[0] + 200
