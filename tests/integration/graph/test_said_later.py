"""Statements said later: which memories of a scope are read, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert

from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.graph.sql import statement
from pipeline.graph.store import MOST_LATER, MOST_NAMING
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import memories
from pipeline.stores import Ledger
from pipeline.text.terms import terms

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
MARCH, MAY, DECEMBER = (JANUARY + timedelta(days=30 * n) for n in (2, 4, 11))
SQUASH = ("Edda", "squash")


@pytest.fixture
def scope() -> Scope:
    return Scope(ProjectId(uuid4()), user_id="maya")


def row(scope: Scope, text: str, said_at: datetime, **fields: Any) -> dict[str, Any]:
    memory = {
        "id": uuid4(), "event_id": uuid4(), "project_id": scope.project_id,
        "lane_id": scope.lane_id, "user_id": scope.user_id, "text": text,
        "text_hash": uuid4().bytes, "terms": terms(text), "attributed_to": "user",
        "embedding": b"", "embedder": "fake/hash", "projected_version": 1, "said_at": said_at,
        "valid_from": said_at, "created_at": said_at, "updated_at": said_at, "edited_at": None,
        "expiration_date": None,
    }  # fmt: skip
    return memory | fields


async def store(ledger: Ledger, *rows: dict[str, Any]) -> None:
    async with ledger.engine.begin() as connection:
        await connection.execute(insert(memories), list(rows))


async def read(ledger: Ledger, scope: Scope) -> list[str]:
    return [s.text for s in await ledger.graph.said_later(scope, [SQUASH], since=MARCH)]


def plays(scope: Scope, count: int, said_at: datetime) -> list[dict[str, Any]]:
    return [row(scope, f"Edda plays squash in hall {n}.", said_at) for n in range(count)]


async def test_earlier_statements_hide_no_later_one(ledger: Ledger, scope: Scope) -> None:
    await store(ledger, *plays(scope, MOST_LATER + 1, JANUARY))
    await store(ledger, row(scope, "Edda quit squash.", MAY))
    assert await read(ledger, scope) == ["Edda quit squash."]


async def test_of_many_statements_those_said_first_are_read(ledger: Ledger, scope: Scope) -> None:
    await store(ledger, row(scope, "Edda quit squash.", DECEMBER))
    await store(ledger, *plays(scope, MOST_LATER, MAY + timedelta(days=1)))
    await store(ledger, row(scope, "Edda gave up squash.", MAY))
    texts = await read(ledger, scope)
    assert (texts[0], len(texts)) == ("Edda gave up squash.", MOST_LATER)
    assert "Edda quit squash." not in texts


async def test_a_pair_that_very_many_memories_name_is_left_out(
    ledger: Ledger, scope: Scope
) -> None:
    await store(ledger, *plays(scope, MOST_NAMING - 1, JANUARY))
    await store(ledger, row(scope, "Edda quit squash.", MAY))
    assert await read(ledger, scope) == ["Edda quit squash."]
    await store(ledger, *plays(scope, 1, JANUARY))
    assert await read(ledger, scope) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"edited_at": DECEMBER},
        {"expiration_date": JANUARY.date() - timedelta(days=3_650)},
        {"kind": "plan"},
        {"event_id": None},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_other_memories_are_not_read(
    ledger: Ledger, scope: Scope, fields: dict[str, Any]
) -> None:
    await store(ledger, row(scope, "Edda quit squash.", MAY, **fields))
    assert await read(ledger, scope) == []


async def test_the_owner_is_compared_behind_the_keys(ledger: Ledger, scope: Scope) -> None:
    other = Scope(scope.project_id, user_id="noor")
    await store(ledger, row(scope, "Edda quit squash.", MAY))
    await store(ledger, row(other, "Edda gave up squash.", MAY))
    values: dict[str, Any] = {
        "project_id": scope.project_id, "lane_id": scope.lane_id, "lookups": [0, 0],
        "keys": ["term/edda", "term/squash"], "since": MARCH, "longest": 100, "most": 9, "limit": 9,
    }  # fmt: skip
    rows = await Direct(ledger.engine).rows(statement("said_later"), values)
    assert [memory.text for memory in rows] == ["Edda quit squash."]
    values["lane_id"] = UUID(int=1)
    assert not await Direct(ledger.engine).rows(statement("said_later"), values)
