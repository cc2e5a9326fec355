"""Migrations build exactly the tables of the metadata, and can run any number of times."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from deploy.stack.servers import Postgres
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.engine import connect
from pipeline.ledger.tables import api_keys, metadata
from pipeline.migrate import first_project, migrate, pending, require_durability
from pipeline.stores import Ledger
from pipeline.tenants.secret import Secret
from tests.support import next_release


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
    )
    return list(compare_metadata(context, metadata))


def shape(connection: Connection) -> dict[str, set[str]]:
    """Definitions of all indexes and constraints, which autogenerate does not compare."""
    indexes = text("SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()")
    checks = text(
        "SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) "
        "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"
    )
    return {
        "indexes": {row for row in connection.scalars(indexes) if "alembic" not in row},
        "constraints": {row for row in connection.scalars(checks) if "alembic" not in row},
    }


async def test_a_migrated_database_equals_the_metadata(ledger: Ledger) -> None:
    async with ledger.engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_migrations_and_metadata_make_the_same_indexes_and_checks(
    ledger: Ledger, postgres: Postgres
) -> None:
    async with ledger.engine.connect() as connection:
        migrated = await connection.run_sync(shape)
    name = f"test_{uuid4().hex}"
    admin = connect(postgres.url, pool_size=1)
    alone = admin.execution_options(isolation_level="AUTOCOMMIT")
    async with alone.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    built = connect(postgres.url.rpartition("/")[0] + "/" + name, pool_size=1)
    async with built.begin() as connection:
        await connection.run_sync(metadata.create_all)
        created = await connection.run_sync(shape)
    await built.dispose()
    async with alone.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await admin.dispose()
    assert migrated == created


async def test_migrating_again_and_at_the_same_time_changes_nothing(ledger: Ledger) -> None:
    async with ledger.engine.connect() as connection:
        before = await connection.run_sync(shape)
    await asyncio.gather(*(migrate(ledger.engine) for _ in range(3)))
    async with ledger.engine.connect() as connection:
        assert await connection.run_sync(shape) == before


async def test_a_migration_gives_up_on_a_table_in_use_instead_of_blocking_requests(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.migrate.LOCK_TIMEOUT", "50ms")
    next_release.install(monkeypatch)  # one of its migrations alters `lanes`
    async with ledger.engine.begin() as backup:
        await backup.execute(text("LOCK TABLE lanes IN ROW EXCLUSIVE MODE"))
        with pytest.raises(InvalidInput, match="in use"):
            await migrate(ledger.engine)
        # The migrations before it are applied.
        assert [plan.revision for plan in await pending(ledger.engine)] == ["9005", "9006"]
    await migrate(ledger.engine)  # The table is free again.
    assert await pending(ledger.engine) == []


async def test_every_table_of_the_metadata_is_there_and_no_other(ledger: Ledger) -> None:
    async with ledger.engine.connect() as connection:
        names = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    assert set(names) - {"alembic_version"} == set(metadata.tables)


async def test_an_error_of_the_database_does_not_repeat_what_was_said(ledger: Ledger) -> None:
    """Celery and the API log exceptions: their text must not contain a user's words."""
    query = text("SELECT CAST(:said AS text), 1 / CAST(:zero AS integer)")
    async with ledger.engine.connect() as connection:
        with pytest.raises(DBAPIError) as caught:
            await connection.execute(query, {"said": "I like jazz.", "zero": 0})
    assert "jazz" not in str(caught.value)


async def test_the_first_project_is_made_once_and_its_key_is_private(
    ledger: Ledger, tmp_path: Path
) -> None:
    key_file = tmp_path / "api_key"
    await first_project(ledger.engine, key_file)
    key = key_file.read_text().strip()
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert await ledger.keys.grants([Secret(key).digest])
    key_file.unlink()
    await first_project(ledger.engine, key_file)
    assert not key_file.exists()
    async with ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(api_keys)) == 1


async def test_a_database_that_may_lose_what_it_acknowledged_is_refused_by_name(
    database_url: str,
) -> None:
    engine = connect(database_url, pool_size=1)
    await require_durability(engine)
    name = engine.url.database
    async with engine.begin() as connection:
        await connection.execute(text(f'ALTER DATABASE "{name}" SET synchronous_commit = off'))
    await engine.dispose()
    with pytest.raises(InvalidInput, match="synchronous_commit"):
        await require_durability(engine)
    async with engine.begin() as connection:
        await connection.execute(text(f'ALTER DATABASE "{name}" RESET synchronous_commit'))
    await engine.dispose()
