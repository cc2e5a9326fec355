"""Statements sent directly to the driver: same values, rows and errors as through SQLAlchemy."""

from __future__ import annotations

import asyncio
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import Integer, bindparam, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from pipeline.ledger.engine import connect
from pipeline.ledger.statements import Direct
from pipeline.stores import Ledger
from tests.support.stack import wait_until

SLEEP = text("SELECT pg_sleep(60)")


@pytest.fixture
def direct(ledger: Ledger) -> Direct:
    return Direct(ledger.engine)


async def test_values_go_by_name_and_columns_come_by_name(direct: Direct) -> None:
    query = text("SELECT CAST(:b AS uuid) AS b, CAST(:a AS text) AS a, CAST(:b AS uuid) AS again")
    row = await direct.row(query, {"a": "x", "b": UUID(int=1), "unused": None})
    assert row is not None
    assert (row.a, row.b, row.again) == ("x", UUID(int=1), UUID(int=1))
    with pytest.raises(AttributeError):
        row.c  # noqa: B018


async def test_a_statement_brings_its_own_values_along(direct: Direct) -> None:
    query = select(
        literal("mine").label("own"), bindparam("given", type_=ARRAY(Integer)).label("given")
    )
    row = await direct.row(query, {"given": [1, 2]})
    assert row is not None
    assert (row.own, row.given) == ("mine", [1, 2])
    with pytest.raises(KeyError):
        await direct.row(query, {})


async def test_no_row_is_none(direct: Direct) -> None:
    assert await direct.row(text("SELECT 1 AS one WHERE false"), {}) is None


async def test_json_comes_as_values(direct: Direct) -> None:
    row = await direct.row(text("SELECT jsonb_build_object('a', 1) AS shown"), {})
    assert row is not None
    assert row.shown == {"a": 1}


async def test_a_broken_constraint_has_an_error_of_its_own_and_spoils_no_connection(
    direct: Direct,
) -> None:
    await direct.rows(text("CREATE TABLE twins (id integer PRIMARY KEY)"), {})
    twin = text("INSERT INTO twins VALUES (1)")
    await direct.rows(twin, {})
    with pytest.raises(IntegrityError):
        await direct.rows(twin, {})
    with pytest.raises(DBAPIError) as refused:
        await direct.rows(text("SELECT 1 / 0"), {})
    assert not refused.value.connection_invalidated
    assert (await direct.rows(text("SELECT count(*) AS held FROM twins"), {}))[0].held == 1


async def test_a_value_that_cannot_be_stored_has_an_error_of_its_own(direct: Direct) -> None:
    with pytest.raises(DataError):
        await direct.rows(text("SELECT CAST(:a AS integer)"), {"a": 2**40})
    with pytest.raises(DataError):
        await direct.rows(text("SELECT CAST(CAST(:a AS text) AS integer)"), {"a": "seven"})


async def test_a_connection_the_server_closed_is_not_used_again(
    direct: Direct, database_url: str
) -> None:
    before = await pid(direct)
    other = await asyncpg.connect(database_url)
    assert await other.fetchval("SELECT pg_terminate_backend($1, 10000)", before)
    await other.close()
    assert await pid(direct) != before


async def test_a_connection_left_in_the_middle_is_not_used_again(
    direct: Direct, database_url: str
) -> None:
    before = await pid(direct)
    left = asyncio.create_task(direct.rows(SLEEP, {}))
    await under_way(database_url, before)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await pid(direct) != before


async def test_a_connection_that_dies_in_the_middle_is_not_used_again(database_url: str) -> None:
    engine = connect(database_url, pool_size=1)
    mine = await pid(Direct(engine))
    cut = asyncio.create_task(Direct(engine).rows(SLEEP, {}))
    await under_way(database_url, mine)
    other = await asyncpg.connect(database_url)
    assert await other.fetchval("SELECT pg_terminate_backend($1, 10000)", mine)
    with pytest.raises(DBAPIError) as died:
        await cut
    assert died.value.connection_invalidated
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT pg_backend_pid()")) != mine
    await other.close()
    await engine.dispose()


async def test_a_server_that_refuses_every_login_is_an_error_of_the_ledger(
    database_url: str,
) -> None:
    engine = connect(database_url.rpartition("/")[0] + "/no_such_database", pool_size=1)
    with pytest.raises(DBAPIError) as refused:
        await Direct(engine).rows(text("SELECT 1"), {})
    assert refused.value.connection_invalidated
    await engine.dispose()


async def under_way(database_url: str, backend: int) -> None:
    """Wait until this server process executes SLEEP."""
    other = await asyncpg.connect(database_url)
    query = "SELECT state = 'active' AND query = $2 FROM pg_stat_activity WHERE pid = $1"

    async def asleep() -> bool:
        return bool(await other.fetchval(query, backend, SLEEP.text))

    await wait_until(asleep, within_s=60, what="the statement under way")
    await other.close()


async def pid(direct: Direct) -> int:
    """Pid of the server process behind the connection; each connection has its own."""
    row = await direct.row(text("SELECT pg_backend_pid() AS pid"), {})
    assert row is not None
    backend: int = row.pid
    return backend
