"""The checker reports each kind of damage that a test does to the ledger by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.chaos_check import Wrong, check_lanes
from tests.support.chaos_ledger import LedgerWindow
from tests.support.chaos_load import ClientLog, in_graph, said, user_of
from tests.support.chaos_sessions import ERASED, VANISHED, traces
from tests.support.engine import Engine

TURNS = 5


@pytest.fixture
async def window(database_url: str) -> AsyncIterator[LedgerWindow]:
    made = LedgerWindow(database_url)
    yield made
    await made.close()


@pytest.fixture
async def log(engine: Engine) -> ClientLog:
    """Log of a lane without damage: two batches, the first with one event."""
    known = ClientLog()
    for turn in range(TURNS):
        event_id = await engine.add(said(0, turn), user_id=user_of(0))
        known.scopes[0].accepted.append((turn, event_id))
        if turn == 0:
            await engine.drain()
    await engine.drain()
    return known


async def test_a_lane_done_by_the_book_is_not_complained_of(
    window: LedgerWindow, log: ClientLog
) -> None:
    assert await check_lanes(window, log) == []


HOME = "(SELECT id FROM memories WHERE text LIKE '%lives%')"
HARMS = {
    "an event is gone": (
        "DELETE FROM receipts WHERE event_id = (SELECT id FROM events WHERE seq = 3);"
        "DELETE FROM messages WHERE seq = 3; DELETE FROM events WHERE seq = 3",
        Wrong.LOST,
    ),
    "an event never ends": (
        "UPDATE events SET status = 'RUNNING', completed_at = NULL WHERE seq = 5",
        Wrong.LOST,
    ),
    "a success says nothing": (
        "DELETE FROM receipts WHERE event_id = (SELECT id FROM events WHERE seq = 2)",
        Wrong.LOST,
    ),
    "a memory is gone": ("DELETE FROM memories WHERE text LIKE '%sport0x2k'", Wrong.LOST),
    "a state is skipped": (
        f"DELETE FROM memory_history WHERE memory_id = {HOME} AND version = 2",
        Wrong.LOST,
    ),
    "a fact is stored twice": (
        "UPDATE memories SET text = 'User likes sport0x1k' WHERE text LIKE '%sport0x2k'",
        Wrong.TWICE,
    ),
    "a state is taken twice": (
        "INSERT INTO memory_history SELECT memory_id, version + 1, project_id, event, old_text,"
        " new_text, metadata, reason, event_id, message_ordinal, valid_from, created_at"
        f" FROM memory_history WHERE memory_id = {HOME} AND version = 2",
        Wrong.TWICE,
    ),
    "a request is accepted twice": (
        "UPDATE messages SET content = (SELECT content FROM messages WHERE seq = 4) WHERE seq = 5",
        Wrong.TWICE,
    ),
    "two events change places": (
        "UPDATE events SET seq = CASE seq WHEN 4 THEN 3 ELSE 4 END + 100 WHERE seq IN (3, 4);"
        "UPDATE messages SET seq = CASE seq WHEN 4 THEN 3 ELSE 4 END + 100 WHERE seq IN (3, 4);"
        "UPDATE events SET seq = seq - 100 WHERE seq > 100;"
        "UPDATE messages SET seq = seq - 100 WHERE seq > 100",
        Wrong.REORDERED,
    ),
    "a batch begins before the last one ended": (
        "UPDATE events SET completed_at = now() + interval '1 hour' WHERE seq = 1",
        Wrong.REORDERED,
    ),
    "the history goes another way": (
        f"UPDATE memory_history SET version = 3 - version + 100 WHERE memory_id = {HOME};"
        f"UPDATE memory_history SET version = version - 100 WHERE memory_id = {HOME}",
        Wrong.REORDERED,
    ),
    "a lane does not rest": (
        "UPDATE lanes SET state = 'QUEUED', due_at = now()",
        Wrong.UNTRUE,
    ),
    "the graph is behind": (
        "UPDATE relations SET expired_at = now() WHERE relation = 'lives_in'",
        Wrong.UNTRUE,
    ),
    "a relation is gone": (
        "DELETE FROM relations r USING entities d WHERE d.id = r.destination_id"
        " AND d.name = 'sport0x2k'",
        Wrong.LOST,
    ),
    "a node is there twice": (
        "INSERT INTO entities (id, project_id, lane_id, name, name_key, kind, plain_name)"
        " SELECT gen_random_uuid(), project_id, lane_id, name, name_key || ' 2', kind, plain_name"
        " FROM entities WHERE name = 'sport0x2k'",
        Wrong.TWICE,
    ),
}


async def test_a_graph_that_no_add_asked_for_is_found(window: LedgerWindow, engine: Engine) -> None:
    known = ClientLog()
    scope = next(scope for scope in range(9) if not in_graph(scope))
    event_id = await engine.add(said(scope, 0), user_id=user_of(scope))
    known.scopes[scope].accepted.append((0, event_id))
    await engine.drain()
    assert {finding.wrong for finding in await check_lanes(window, known)} == {Wrong.UNTRUE}


@pytest.mark.parametrize("harm", HARMS)
async def test_each_harm_is_found(window: LedgerWindow, log: ClientLog, harm: str) -> None:
    statements, wrong = HARMS[harm]
    for statement in statements.split(";"):
        await window.rows(statement)
    assert wrong in {finding.wrong for finding in await check_lanes(window, log)}


async def test_a_text_that_must_be_gone_is_named_with_its_places(
    window: LedgerWindow, engine: Engine
) -> None:
    await engine.add("I live in Bern.", user_id="maya")
    await engine.drain()
    assert await traces(window, (VANISHED, ERASED)) == {}
    await engine.add("I moved to Vanished1x2k.", user_id="deletia-3")
    await engine.drain()
    places = await traces(window, (VANISHED, ERASED))
    assert {"messages.content", "memories.text", "lanes.user_id"} <= places.keys()
