"""Turns around a hit: read by index, at any length of the conversation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import insert, text

from api.search.responses import AROUND_TEXT, LONGEST_ANSWER
from pipeline.domain.passages import PassageKey
from pipeline.ledger.tables import events, lanes, messages
from pipeline.search import store
from tests.support.engine import Engine

LONG = 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)


async def converse(engine: Engine) -> list[PassageKey]:
    """Store a conversation of LONG turns, one event each; return their keys in order."""
    scope = engine.scope()
    keys = [PassageKey(uuid4(), 0) for _ in range(LONG)]
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            insert(lanes).values(
                id=scope.lane_id, project_id=scope.project_id, user_id="maya", state="IDLE"
            )
        )
        common = {"lane_id": scope.lane_id, "project_id": scope.project_id}
        ended = {"status": "SUCCEEDED", "completed_at": START, "options": {}, "tokens": 1}
        await connection.execute(
            insert(events),
            [{"id": key.id, "seq": seq, **common, **ended} for seq, key in enumerate(keys, 1)],
        )
        await connection.execute(
            insert(messages),
            [
                {
                    "lane_id": scope.lane_id,
                    "seq": seq,
                    "ordinal": 0,
                    "role": "user",
                    "content": f"turn {seq}",
                    "said_at": START + timedelta(minutes=seq),
                }
                for seq in range(1, LONG + 1)
            ],
        )
        await connection.execute(text(_MEMORIES))
        await connection.execute(text(_HISTORY))
    async with engine.ledger.engine.execution_options(
        isolation_level="AUTOCOMMIT"
    ).connect() as connection:
        await connection.execute(text("VACUUM ANALYZE"))
    return keys


# A memory of each turn. Models have retired every second one, which hides no turn.
_MEMORIES = """
    INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, embedding, embedder,
                          valid_from, attributed_to, event_id, message_ordinal, metadata, state)
    SELECT gen_random_uuid(), project_id, lane_id, 'maya', 'fact ' || seq, sha256(id::text::bytea),
           '', 'none', now(), 'user', id, 0, '{}',
           CASE WHEN seq % 2 = 0 THEN 'RETIRED' ELSE 'ACTIVE' END
    FROM events
"""
_HISTORY = """
    INSERT INTO memory_history (memory_id, version, project_id, event, metadata, reason, event_id,
                                message_ordinal, valid_from)
    SELECT id, 1, project_id, CASE WHEN state = 'RETIRED' THEN 'DELETE' ELSE 'ADD' END, '{}', '',
           event_id, 0, now()
    FROM memories
"""


async def test_the_turns_around_a_hit_are_read_without_the_rest(engine: Engine) -> None:
    keys = await converse(engine)
    wanted = keys[100::500]
    async with asyncio.timeout(20):  # it took 30 s when each turn was compared with all others
        around = await engine.ledger.passages.around(engine.project.id, wanted, turns=10)
    for key in wanted:
        at = keys.index(key)
        assert [turn.text for turn in around[key]] == [
            f"turn {other + 1}" for other in range(at - 10, at + 11) if other != at
        ]


async def test_at_the_ends_of_a_conversation_there_are_fewer(engine: Engine) -> None:
    keys = await converse(engine)
    around = await engine.ledger.passages.around(engine.project.id, [keys[0], keys[-1]], turns=2)
    assert [turn.text for turn in around[keys[0]]] == ["turn 2", "turn 3"]
    assert [turn.text for turn in around[keys[-1]]] == [f"turn {LONG - 2}", f"turn {LONG - 1}"]


async def test_the_turns_of_later_hits_are_not_read_once_there_are_enough(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = await converse(engine)
    wanted = keys[10:40:10]
    monkeypatch.setattr(store, "AROUND_AT_ONCE", 4)
    passages = engine.ledger.passages
    whole = await passages.around(engine.project.id, wanted, turns=2)
    assert [len(whole[key]) for key in wanted] == [4, 4, 4]
    part = await passages.around(engine.project.id, wanted, turns=2, most=5)
    assert part == {key: whole[key] for key in wanted[:2]}


def test_an_answer_has_no_room_for_the_turns_that_are_not_read() -> None:
    assert store.MOST_AROUND * AROUND_TEXT >= LONGEST_ANSWER
