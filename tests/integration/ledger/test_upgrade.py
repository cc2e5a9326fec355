"""Upgrade of a ledger with rows: what old revisions fill, also if one is stopped and run again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from alembic import command
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from deploy.stack.servers import Postgres
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import alembic_config, migrate

MEMORY, LANE, PROJECT = (UUID(int=number) for number in (1, 2, 3))
ROWS = (
    "INSERT INTO lanes (id, project_id, user_id, state) VALUES (:lane, :project, 'maya', 'IDLE')",
    "INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, terms, attributed_to,"
    " embedding, embedder, valid_from, version) VALUES (:memory, :project, :lane, 'maya',"
    " 'User likes tea', '\\x01', '{}', 'user', '\\x00', 'e', '2026-03-01', 3)",
    "INSERT INTO memory_history"
    " (memory_id, version, project_id, event, new_text, valid_from, created_at)"
    " SELECT :memory, v, :project, 'UPDATE', 'User likes tea ' || v, '2026-03-01',"
    " timestamptz '2026-03-01' + v * interval '1 day' FROM generate_series(1, 3) v",
    "INSERT INTO entities (id, project_id, lane_id, name, name_key, kind)"
    " VALUES (gen_random_uuid(), :project, :lane, 'Green-Tea', 'green-tea', 'thing')",
)
FILLED = (
    "SELECT said_at = valid_from FROM memories",
    "SELECT version, text, replaced_at::date::text FROM past_states ORDER BY version",
    "SELECT plain_name FROM entities",
)


@pytest.fixture
async def engine(postgres: Postgres) -> AsyncIterator[AsyncEngine]:
    name = f"upgraded_{uuid4().hex}"
    server = connect(postgres.url, pool_size=1).execution_options(isolation_level="AUTOCOMMIT")
    async with server.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    url = make_url(postgres.url).set(database=name).render_as_string(hide_password=False)
    engine = connect(url, pool_size=2, limits=UNLIMITED)
    yield engine
    await engine.dispose()
    async with server.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await server.dispose()


async def filled(engine: AsyncEngine) -> list[Sequence[Any]]:
    async with engine.connect() as connection:
        return [list(map(tuple, await connection.execute(text(query)))) for query in FILLED]


@pytest.mark.parametrize("stopped_in", [None, "0037", "0042"])
async def test_an_upgrade_fills_what_old_rows_lack_once(
    engine: AsyncEngine, stopped_in: str | None
) -> None:
    def to(revision: str) -> Any:
        return lambda connection: _upgrade(connection, revision)

    async with engine.begin() as connection:
        await connection.run_sync(to("0026"))
        for statement in ROWS:
            values = {"memory": MEMORY, "lane": LANE, "project": PROJECT}
            names = {name: value for name, value in values.items() if f":{name}" in statement}
            await connection.execute(text(statement), names)
    if stopped_in:  # its steps are committed, its number is not
        async with engine.begin() as connection:
            await connection.run_sync(to(stopped_in))
            before = f"{int(stopped_in) - 1:04}"
            await connection.execute(text(f"UPDATE alembic_version SET version_num = '{before}'"))
    await migrate(engine)
    assert await filled(engine) == [
        [(True,)],
        [(1, "User likes tea 1", "2026-03-03"), (2, "User likes tea 2", "2026-03-04")],
        [("green tea",)],
    ]


def _upgrade(connection: Connection, revision: str) -> None:
    command.upgrade(alembic_config(connection), revision)
