"""Long lists of suggestions and conflicts: a page reads about as many rows as it shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import md5
from uuid import UUID

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.ledger.counting import COUNTED
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.ledger.migrations.online import WITHIN
from pipeline.migrate import alembic_config
from pipeline.stores import Ledger
from tests.support.api_service import Service, serving
from tests.support.plans import recorded, rows_read
from tests.support.shown_states import wrong_marks

SUGGESTIONS_PATH, CONFLICTS_PATH = "/v1/suggestions/", "/v1/conflicts/"
MANY, FEW, PAGE = 30_000, 3, 25
# The count of a long list is exact up to COUNTED rows after the page.
MOST_KNOWN = PAGE + COUNTED
MOST_COUNTED = MOST_KNOWN + 100
LANE = """
    INSERT INTO lanes (id, project_id, user_id, state)
    VALUES (md5('lane')::uuid, CAST(:project_id AS uuid), 'many', 'IDLE')
"""
# Each conflict or suggestion has memories of its own. `a` and `b`: the two sides of a conflict.
MEMORIES = """
    INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, terms, metadata,
        attributed_to, embedding, embedder, projected_version, said_at, valid_from, version)
    SELECT md5(side || n)::uuid, CAST(:project_id AS uuid), md5('lane')::uuid, 'many',
        side || n, decode(md5(side || n), 'hex'), ARRAY[side || n], '{}', 'user', '', 'fake/hash',
        1, now(), now(), 1
    FROM generate_series(1, CAST(:rows AS integer)) n, unnest(ARRAY['a', 'b']) side
"""
SUGGESTIONS = """
    INSERT INTO suggestions (id, project_id, lane_id, kind, origin, targets, proposed_text, reason,
        content_hash, created_at)
    SELECT md5('s' || n)::uuid, CAST(:project_id AS uuid), md5('lane')::uuid,
        CASE WHEN n % 2 = 0 THEN 'COMBINE' ELSE 'UPDATE' END, 'curator',
        jsonb_build_array(jsonb_build_object('memory_id', md5('a' || n)::uuid, 'version', 1)),
        'Clearer.', 'It is clearer.', decode(md5('s' || n), 'hex'), now() - n * interval '1 s'
    FROM generate_series(1, CAST(:rows AS integer)) n
"""
CONFLICTS = """
    INSERT INTO conflicts (id, project_id, lane_id, slot, event_id, created_at)
    SELECT md5('c' || n)::uuid, CAST(:project_id AS uuid), md5('lane')::uuid, 'many',
        gen_random_uuid(), now() - n * interval '1 s'
    FROM generate_series(1, CAST(:rows AS integer)) n
"""
MEMBERS = """
    INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)
    SELECT md5('c' || n)::uuid, md5(mine || n)::uuid, md5(other || n)::uuid, md5('lane')::uuid,
        decode(md5(mine || n), 'hex')
    FROM generate_series(1, CAST(:rows AS integer)) n,
        (VALUES ('a', 'b'), ('b', 'a')) m (mine, other)
"""
CHANGE = """
    UPDATE memories SET version = version + 1, text_hash = decode(md5(id::text || version), 'hex')
    FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n
    WHERE memories.id = md5('a' || n)::uuid
"""
# The state of the day after the last day of a memory.
EXPIRE = """
    WITH memory AS (
        UPDATE memories SET expiration_date = (now() AT TIME ZONE 'UTC')::date - 1
        FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n
        WHERE memories.id = md5('a' || n)::uuid
    )
    UPDATE conflicts SET open_until = (now() AT TIME ZONE 'UTC')::date - 1
    FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n
    WHERE conflicts.id = md5('c' || n)::uuid
"""
NO_TRIGGERS, TRIGGERS = (f"SET session_replication_role = {role}" for role in ("replica", "origin"))


@asynccontextmanager
async def filling(ledger: Ledger) -> AsyncIterator[AsyncConnection]:
    """A connection without the time limits of requests, each statement of which commits."""
    url = ledger.engine.url.render_as_string(hide_password=False)
    engine = connect(url, pool_size=1, limits=UNLIMITED)
    alone = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with alone.connect() as connection:
        yield connection
        await connection.execute(text("VACUUM ANALYZE"))
    await engine.dispose()


@pytest.fixture
async def many(module_ledger: Ledger) -> AsyncIterator[Service]:
    """A service with MANY open suggestions and as many open conflicts."""
    async with serving(module_ledger) as service:
        values = {"project_id": service.engine.project.id, "rows": MANY}
        async with filling(module_ledger) as connection:
            await connection.execute(text(NO_TRIGGERS))
            for words in (LANE, MEMORIES, SUGGESTIONS, CONFLICTS, MEMBERS):
                named = {name: value for name, value in values.items() if f":{name}" in words}
                await connection.execute(text(words), named)
            await back_fill(connection)
        yield service


async def back_fill(connection: AsyncConnection) -> None:
    """Mark all rows with the statements of the migration."""
    migration = ScriptDirectory.from_config(alembic_config()).get_revision("0088")
    await connection.execute(text("ANALYZE"))
    for statement in migration.module.MARKS.values():
        await connection.execute(text(statement.replace(WITHIN, "true")))


async def change(service: Service, words: str, first: int, last: int) -> None:
    async with filling(service.engine.ledger) as connection:
        await connection.execute(text(words), {"first": first, "last": last})


async def page(service: Service, path: str, **query: str) -> tuple[set[str], int]:
    """The ids of a page and the count of its list.

    Its statements read at most the rows that the count may read, and a few times as many as they
    show if that are fewer.
    """
    engine = service.engine.ledger.engine
    with recorded(engine) as statements:
        answer = await service.client.get(path, params={"page_size": str(PAGE), **query})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    most = MOST_COUNTED if body["count"] > PAGE else 4 * PAGE
    assert await rows_read(engine, statements) <= most, (path, query)
    return {row["id"] for row in body["results"]}, body["count"]


def ids(letter: str, *numbers: int) -> set[str]:
    return {str(UUID(md5(f"{letter}{n}".encode()).hexdigest())) for n in numbers}


@pytest.mark.timeout(600)
async def test_a_page_reads_about_what_it_shows(many: Service) -> None:
    ledger = many.engine.ledger
    suggestions, conflicts = (
        partial(page, many, SUGGESTIONS_PATH),
        partial(page, many, CONFLICTS_PATH),
    )
    newest = set(range(1, PAGE + 1))
    # All are open.
    for query in ({}, {"state": "OPEN"}):
        assert await suggestions(**query) == (ids("s", *newest), MOST_KNOWN)
        assert await conflicts(**query) == (ids("c", *newest), MOST_KNOWN)
    assert await suggestions(state="INVALID") == (set(), 0)
    assert await suggestions(state="OPEN", kind="DELETE") == (set(), 0)
    assert await suggestions(kind="DELETE") == (set(), 0)
    assert await conflicts(state="RESOLVED") == (set(), 0)
    # A few are not.
    await change(many, CHANGE, 1, FEW)
    assert await suggestions(state="INVALID") == (ids("s", *range(1, FEW + 1)), FEW)
    assert await conflicts(state="RESOLVED") == (ids("c", *range(1, FEW + 1)), FEW)
    await change(many, EXPIRE, FEW + 1, 2 * FEW)
    for _ in range(2):  # before and after the sweeper
        assert await conflicts(state="RESOLVED") == (ids("c", *range(1, 2 * FEW + 1)), 2 * FEW)
        shown, _ = await conflicts(state="OPEN")
        assert shown == ids("c", *range(2 * FEW + 1, 2 * FEW + 1 + PAGE))
        await ledger.conflicts.close_expired(limit=PAGE)
    assert await ledger.conflicts.close_expired(limit=PAGE) == 0
    # Only a few are.
    async with filling(ledger) as connection:
        await connection.execute(text(NO_TRIGGERS))
        rest = {"first": 2 * FEW + 1, "last": MANY - FEW}
        await connection.execute(text(CHANGE), rest)
        await back_fill(connection)
    oldest = range(MANY - FEW + 1, MANY + 1)
    assert await suggestions(state="OPEN") == (
        ids("s", *oldest, *range(FEW + 1, 2 * FEW + 1)),
        2 * FEW,
    )
    assert await conflicts(state="OPEN") == (ids("c", *oldest), FEW)
    [deleted] = [n for n in oldest if n % 2 == 0][:1]
    assert (
        str(UUID(md5(f"s{deleted}".encode()).hexdigest()))
        in (await suggestions(state="OPEN", kind="COMBINE"))[0]
    )
    assert (await conflicts(state="RESOLVED"))[1] == MOST_KNOWN
    assert await wrong_marks(ledger.engine) == []
