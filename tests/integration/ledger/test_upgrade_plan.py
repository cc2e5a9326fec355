"""`memlane migrate --check`: predicted locks against those that the migrations really take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
from alembic import command
from sqlalchemy import Connection, event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from deploy.cli.migrate import lines
from deploy.stack.servers import Postgres
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.ledger.upgrade_plan import (
    Lock,
    LockedWork,
    MigrationPlan,
    StatementEffect,
    TableLock,
    read,
)
from pipeline.migrate import alembic_config, migrate, newest_schema, oldest_schema, pending
from tests.support import next_release

HELD = """
    SELECT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND c.relkind = 'r'
      AND c.relnamespace = CAST(current_schema() AS regnamespace)
"""
LOCKS = {
    "AccessExclusiveLock": Lock.ALL,
    "ShareRowExclusiveLock": Lock.WRITES,
    "ShareLock": Lock.WRITES,
}


@pytest.fixture
async def old(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncEngine]:
    """An engine on a database of this release, for a release with further migrations."""
    first = oldest_schema()
    next_release.install(monkeypatch)
    server = connect(postgres.url, pool_size=1)
    single = server.execution_options(isolation_level="AUTOCOMMIT")
    async with single.connect() as connection:
        await connection.execute(text("DROP DATABASE IF EXISTS upgrade_plan WITH (FORCE)"))
        await connection.execute(text("CREATE DATABASE upgrade_plan"))
        url = postgres.url.rpartition("/")[0] + "/upgrade_plan"
        engine = connect(url, pool_size=3, limits=UNLIMITED)
        await upgrade(engine, first)
        yield engine
        await engine.dispose()
        await connection.execute(text("DROP DATABASE upgrade_plan WITH (FORCE)"))
    await server.dispose()


async def upgrade(engine: AsyncEngine, revision: str) -> dict[str, Lock]:
    """Migrate to a revision. Returns the strongest lock on each table that existed before."""
    strongest: dict[str, Lock] = defaultdict(lambda: Lock.NOTHING)

    def run(connection: Connection) -> None:
        existing = set(connection.scalars(text(TABLES)))
        connection.commit()

        def look(ending: Connection) -> None:
            for name, mode in ending.exec_driver_sql(HELD):
                if name in existing and mode in LOCKS:
                    strongest[name] = max(strongest[name], LOCKS[mode])

        event.listen(connection, "commit", look)
        try:
            command.upgrade(alembic_config(connection), revision)
        finally:
            event.remove(connection, "commit", look)

    async with engine.connect() as connection:
        await connection.run_sync(run)
    return dict(strongest)


TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace)
"""


async def test_every_lock_of_every_migration_is_predicted(old: AsyncEngine) -> None:
    plans = await pending(old)
    assert len(plans) >= 6
    assert plans[-1].revision == newest_schema() == next_release.NEWEST
    wrong = {}
    for number, plan in enumerate(plans):
        # Tables that an earlier migration creates exist only now.
        predicted = {lock.table: lock.lock for lock in (await pending(old))[0].locks}
        actual = await upgrade(old, plan.revision)
        missed = {t: k.name for t, k in actual.items() if predicted.get(t, Lock.NOTHING) < k}
        missed.pop("alembic_version", None)
        if missed:
            wrong[plan.revision] = missed
        assert len(await pending(old)) == len(plans) - number - 1
    assert wrong == {}, wrong
    assert list(lines(await pending(old))) == [
        f"Nothing to do: the schema is {newest_schema()}, the newest."
    ]


async def test_a_check_changes_nothing_and_names_rows_and_times(old: AsyncEngine) -> None:
    await upgrade(old, "9004")
    async with old.begin() as connection:
        await connection.execute(
            text("UPDATE pg_class SET reltuples = 2000000 WHERE relname = 'lanes'")
        )
    plans = await pending(old)
    assert plans == await pending(old)
    shown = list(lines(plans[:1]))
    assert shown[0].startswith("9005  lanes")
    words = "lanes closed to reads and writes about 40 s 2,000,000 rows"
    assert shown[1].split() == words.split()
    await migrate(old)
    assert await pending(old) == []


async def test_the_schema_of_a_newer_release_is_refused(old: AsyncEngine) -> None:
    async with old.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InvalidInput, match="schema 9999"):
        await pending(old)


@pytest.mark.parametrize(
    ("statement", "table", "lock", "work"),
    [
        ("CREATE INDEX CONCURRENTLY i ON events (id)", "events", Lock.NOTHING, LockedWork.INDEX),
        ("CREATE UNIQUE INDEX i ON events (id)", "events", Lock.WRITES, LockedWork.INDEX),
        ("ALTER TABLE t ADD COLUMN c TEXT", "t", Lock.ALL, LockedWork.MOMENT),
        (
            "ALTER TABLE t ADD COLUMN c INTEGER GENERATED ALWAYS AS (1) STORED",
            "t",
            Lock.ALL,
            LockedWork.REWRITE,
        ),
        ("ALTER TABLE t ALTER COLUMN c TYPE BIGINT", "t", Lock.ALL, LockedWork.REWRITE),
        ("ALTER TABLE t ALTER COLUMN c SET NOT NULL", "t", Lock.ALL, LockedWork.SCAN),
        ("ALTER TABLE t ADD CONSTRAINT k CHECK (c > 0)", "t", Lock.ALL, LockedWork.SCAN),
        (
            "ALTER TABLE t ADD CONSTRAINT k CHECK (c > 0) NOT VALID",
            "t",
            Lock.ALL,
            LockedWork.MOMENT,
        ),
        ("ALTER TABLE t VALIDATE CONSTRAINT k", "t", Lock.NOTHING, LockedWork.SCAN),
        ("WITH x AS (SELECT 1) UPDATE t SET c = 1", "t", Lock.ROWS, LockedWork.CHANGE),
        ("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE", "t", Lock.WRITES, LockedWork.MOMENT),
        ("LOCK TABLE t", "t", Lock.ALL, LockedWork.MOMENT),
        (
            "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "t",
            Lock.WRITES,
            LockedWork.MOMENT,
        ),
    ],
)
def test_a_statement_is_read(statement: str, table: str, lock: Lock, work: LockedWork) -> None:
    steps = read(statement)
    assert steps is not None
    step = steps[0]
    assert (step.table, step.lock, step.work) == (table, lock, work)


def test_statements_that_cannot_be_read_are_counted() -> None:
    assert read("CREATE FUNCTION f() RETURNS void AS 'UPDATE t SET c = 1'") == ()
    assert read("DO $$ BEGIN PERFORM 1; END $$") is None
    assert read("DROP INDEX i", {"i": "t"}) == (StatementEffect("t", Lock.ALL, LockedWork.MOMENT),)
    assert read("CREATE TABLE t (id UUID REFERENCES u (id))") == (
        StatementEffect("t", Lock.ALL, LockedWork.MOMENT),
        StatementEffect("u", Lock.WRITES, LockedWork.MOMENT),
    )
    plan = MigrationPlan("0001", "x", (TableLock("t", Lock.ROWS, 3, 0.1),), unread=2)
    assert list(lines([plan]))[-1].strip() == "2 statements cannot be read without running them"
