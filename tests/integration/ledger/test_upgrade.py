"""Upgrade of a ledger with rows to the migrations of a next release, also after an interruption."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID, uuid4

import pytest
from alembic import command
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from deploy.stack.servers import Postgres
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import alembic_config, migrate, newest_schema, oldest_schema, pending
from tests.support import next_release
from tests.support.shown_states import wrong_marks
from tests.support.stack import wait_until

LANE, PROJECT = (UUID(int=number) for number in (2, 3))
MEMORIES = 12_000  # three batches of a back-fill
ROWS = (
    "INSERT INTO lanes (id, project_id, user_id, state)"
    f" VALUES ('{LANE}', '{PROJECT}', 'm', 'IDLE')",
    "INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, attributed_to,"
    " embedding, embedder, said_at, valid_from)"
    f" SELECT gen_random_uuid(), '{PROJECT}', '{LANE}', 'm',"
    " repeat('x', n % 7), sha256(n::text::bytea), 'user', '\\x00', 'e', now(), now()"
    f" FROM generate_series(1, {MEMORIES}) n",
)
# A suggestion and a conflict of each kind: their memories have changed since, or not.
PAIR = "SELECT id FROM memories ORDER BY id LIMIT 2"
DECISIONS = (
    "INSERT INTO suggestions (id, project_id, lane_id, kind, origin, targets, reason, content_hash)"
    f" SELECT gen_random_uuid(), '{PROJECT}', '{LANE}', 'DELETE', 'curator',"
    " jsonb_build_array(jsonb_build_object('memory_id', m.id, 'version', k.version)), k.name,"
    f" sha256(k.name::bytea) FROM (VALUES ('changed', 0), ('unchanged', 1)) k (name, version),"
    f" (SELECT id FROM ({PAIR}) pair LIMIT 1) m",
    "INSERT INTO conflicts (id, project_id, lane_id, slot, event_id)"
    f" SELECT gen_random_uuid(), '{PROJECT}', '{LANE}', slot, gen_random_uuid()"
    " FROM unnest(ARRAY['changed', 'unchanged']) slot",
    "INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)"
    " SELECT c.id, m.id, o.id, m.lane_id,"
    " CASE c.slot WHEN 'changed' THEN '\\x00' ELSE m.text_hash END"
    f" FROM conflicts c, memories m, memories o WHERE m.id IN ({PAIR}) AND o.id IN ({PAIR})"
    " AND m.id <> o.id",
)
EVENT, NODE = UUID(int=4), UUID(int=5)
# An undone event, and relations that its receipt names.
WITHDRAWN = (
    "INSERT INTO events (id, project_id, lane_id, seq, options, tokens, status, completed_at,"
    " undone_at)"
    f" VALUES ('{EVENT}', '{PROJECT}', '{LANE}', 1, '{{}}', 0, 'SUCCEEDED', '2026-03-02',"
    " '2026-03-05')",
    "INSERT INTO entities (id, project_id, lane_id, name, name_key, kind)"
    f" VALUES ('{NODE}', '{PROJECT}', '{LANE}', 'User', 'user', 'person')",
    "INSERT INTO relations (id, project_id, lane_id, source_id, relation, destination_id,"
    " event_id, valid_from, created_at, expired_at, valid_to)"
    f" SELECT gen_random_uuid(), '{PROJECT}', '{LANE}', '{NODE}', name, '{NODE}',"
    " gen_random_uuid(), '2026-03-01', '2026-03-01', expired::timestamptz, expired::timestamptz"
    " FROM (VALUES ('holds', NULL), ('ended', '2026-03-03'), ('was ended', '2026-03-01'))"
    " edge (name, expired)",
    "INSERT INTO graph_receipts (event_id, ordinal, outcome, relation_id, source, relation,"
    " destination, reason, message_ordinal)"
    f" SELECT '{EVENT}', row_number() OVER (), 'INVALIDATE', id, 'User', relation, 'User', '', 0"
    " FROM relations",
)
WAITS = "SELECT count(*) FROM pg_locks WHERE relation = 'webhooks'::regclass AND NOT granted"
RIGHT = """
    SELECT count(*) FROM memories m JOIN letters_of l ON l.memory_id = m.id
    WHERE m.letters = length(m.text) AND l.letters = m.letters
"""


@pytest.fixture
async def engine(postgres: Postgres) -> AsyncIterator[AsyncEngine]:
    """An engine on a ledger with rows."""
    name = f"upgraded_{uuid4().hex}"
    server = connect(postgres.url, pool_size=1).execution_options(isolation_level="AUTOCOMMIT")
    async with server.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    url = make_url(postgres.url).set(database=name).render_as_string(hide_password=False)
    engine = connect(url, pool_size=2, limits=UNLIMITED)
    await migrate(engine)
    async with engine.begin() as connection:
        # Longer than a writer of a test needs to close the circle of a deadlock.
        await connection.execute(text(f"ALTER DATABASE {name} SET deadlock_timeout = '3s'"))
        for statement in ROWS:
            await connection.execute(text(statement))
    yield engine
    await engine.dispose()
    async with server.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await server.dispose()


@pytest.mark.parametrize("stopped", [False, True])
async def test_an_upgrade_fills_old_rows_once_also_if_it_is_stopped_and_run_again(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    next_release.install(monkeypatch)
    if stopped:  # the steps of the migration are committed, its number is not
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade, next_release.FILL)
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE memories SET text = text || 'y' WHERE text = ''"))
            await connection.execute(text("ALTER TABLE memories ALTER letters DROP NOT NULL"))
            await connection.execute(text("UPDATE memories SET letters = NULL WHERE text = 'y'"))
            await connection.execute(text("DELETE FROM letters_of WHERE letters = 0"))
            await connection.execute(text("UPDATE alembic_version SET version_num = '9002'"))
    await migrate(engine)
    async with engine.connect() as connection:
        assert await connection.scalar(text(RIGHT)) == MEMORIES
        written = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    assert written == newest_schema() == next_release.NEWEST


async def test_a_migration_that_deadlocks_with_a_writer_is_tried_again(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_release.install(monkeypatch)
    async with engine.connect() as connection:
        await connection.run_sync(_upgrade, "9005")
    # The migration locks `projects`, then `webhooks`; the writer does the opposite.
    async with engine.connect() as writer:
        await writer.execute(text("SET deadlock_timeout = '1h'"))  # PostgreSQL ends the other one
        await writer.commit()
        await writer.execute(text("LOCK TABLE webhooks"))
        migrating = asyncio.create_task(migrate(engine))
        await wait_until(lambda: waits(engine), within_s=60, what="a migration that waits")
        await writer.execute(text("LOCK TABLE projects"))
        await writer.commit()
        await migrating
    async with engine.connect() as connection:
        written = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    assert written == newest_schema()


async def waits(engine: AsyncEngine) -> bool:
    """Tell if a session waits for the table of webhooks."""
    async with engine.connect() as connection:
        return bool(await connection.scalar(text(WAITS)))


async def test_the_schema_of_an_early_build_is_refused_with_the_release_to_take_first(
    engine: AsyncEngine,
) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0054'"))
    for refused in (migrate, pending):
        with pytest.raises(InvalidInput, match=f"schema 0054.*{oldest_schema()}.*commit 7d2a913"):
            await refused(engine)


def _upgrade(connection: Connection, revision: str) -> None:
    command.upgrade(alembic_config(connection), revision)


async def test_suggestions_and_conflicts_from_before_their_marks_are_marked(
    engine: AsyncEngine,
) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(lambda sync: command.downgrade(alembic_config(sync), "0087"))
        for statement in DECISIONS:
            await connection.execute(text(statement))
    await migrate(engine)
    async with engine.connect() as connection:
        outdated = "SELECT reason, outdated FROM suggestions ORDER BY reason"
        rows = (await connection.execute(text(outdated))).all()
        assert [tuple(row) for row in rows] == [("changed", True), ("unchanged", False)]
        conflicts = "SELECT slot, open_until = 'infinity' FROM conflicts ORDER BY slot"
        rows = (await connection.execute(text(conflicts))).all()
        assert [tuple(row) for row in rows] == [("changed", None), ("unchanged", True)]
    assert await wrong_marks(engine) == []


async def test_ends_that_were_withdrawn_before_they_were_kept_are_read_from_the_receipts(
    engine: AsyncEngine,
) -> None:
    """Of three relations that an undone event ended: one holds again, the others have ended."""
    async with engine.begin() as connection:
        await connection.run_sync(lambda sync: command.downgrade(alembic_config(sync), "0088"))
        for statement in WITHDRAWN:
            await connection.execute(text(statement))
    await migrate(engine)
    async with engine.begin() as connection:
        query = text("SELECT relation, past_ends FROM relations WHERE past_ends IS NOT NULL")
        [(name, ends)] = (await connection.execute(query)).all()
        assert (name, [end["valid_to"] for end in ends]) == ("holds", [None])
        assert ends[0]["ended_by"] == str(EVENT)
        days = [datetime.fromisoformat(ends[0][key]).day for key in ("expired_at", "replaced_at")]
        assert days == [2, 5]
        again = "UPDATE relations SET expired_at = '2026-03-07', valid_to = '2026-03-06'"
        await connection.execute(text(again))
        await connection.execute(text("UPDATE relations SET expired_at = NULL"))
    async with engine.connect() as connection:
        number = "SELECT sum(jsonb_array_length(past_ends)) FROM relations"
        assert await connection.scalar(text(number)) == 4
