"""Connections that stop answering, become read-only or come from a pooler."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.engine import SESSION, SessionLimits, behind_pooler, connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.statements import Direct
from tests.support.proxy import proxied
from tests.support.stack import wait_until

SHORT = SessionLimits(0.3)
# Much more than all limits together, much less than a connection without limits would wait.
WITHIN_S = 30.0
CONNECTIONS = 4
NICE = 3
PID = text("SELECT pg_backend_pid() AS pid")
WRITE = text("CREATE TABLE written ()")
SLOW = text("SELECT pg_sleep(600)")
Ask = Callable[[AsyncEngine], Awaitable[int]]


async def directly(engine: AsyncEngine) -> int:
    row = await Direct(engine).row(PID, {})
    assert row is not None
    return int(row.pid)


async def through_sqlalchemy(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(PID)).scalar_one())


async def open_all(engine: AsyncEngine) -> set[int]:
    connections = [await engine.connect() for _ in range(CONNECTIONS)]
    pids = {int((await connection.execute(PID)).scalar_one()) for connection in connections}
    for connection in connections:
        await connection.close()
    return pids


@pytest.mark.parametrize("ask", [directly, through_sqlalchemy])
async def test_one_silent_connection_is_enough_to_use_none_of_its_age_again(
    database_url: str, ask: Ask
) -> None:
    async with asyncio.timeout(WITHIN_S), proxied(database_url) as proxy:
        engine = connect(proxy.url, pool_size=CONNECTIONS, limits=SHORT)
        before = await open_all(engine)
        proxy.fall_silent()
        with pytest.raises(LedgerUnavailable):
            await ask(engine)
        after = {await ask(engine) for _ in range(2 * CONNECTIONS)}
        assert not before & after
        await engine.dispose()


async def test_the_server_ends_a_slow_statement_and_its_connection_stays(
    database_url: str,
) -> None:
    engine = connect(database_url, pool_size=1, limits=SHORT)
    pid = await directly(engine)
    with pytest.raises(DBAPIError) as ended:
        await Direct(engine).rows(SLOW, {})
    assert not ended.value.connection_invalidated
    with pytest.raises(DBAPIError):
        async with engine.connect() as connection:
            await connection.execute(SLOW)
    assert await directly(engine) == pid
    await engine.dispose()


async def write_directly(engine: AsyncEngine) -> None:
    await Direct(engine).rows(WRITE, {})


async def write_through_sqlalchemy(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(WRITE)


@pytest.mark.parametrize("write", [write_directly, write_through_sqlalchemy])
async def test_a_primary_that_became_a_standby_gets_new_connections(
    database_url: str, write: Callable[[AsyncEngine], Awaitable[None]]
) -> None:
    engine = connect(database_url, pool_size=1)
    before = await directly(engine)
    await Direct(engine).rows(text("SET default_transaction_read_only = on"), {})
    with pytest.raises(DBAPIError) as refused:
        await write(engine)
    assert refused.value.connection_invalidated
    assert await directly(engine) != before
    await engine.dispose()


async def test_a_connection_has_the_session_settings(database_url: str) -> None:
    engine = connect(database_url, pool_size=1, limits=SessionLimits(7.0, lock_s=0.25))
    async with engine.connect() as connection:
        query = text("SELECT name, setting FROM pg_settings")
        values = {row.name: row.setting for row in await connection.execute(query)}
    wanted = {**SESSION, "statement_timeout": "7000", "lock_timeout": "250"}
    assert {name: values[name] for name in wanted} == wanted
    assert not behind_pooler(engine)
    await engine.dispose()


async def test_a_backend_has_the_priority_of_its_client(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: NICE)
    direct = connect(database_url, pool_size=1)
    assert os.getpriority(os.PRIO_PROCESS, await directly(direct)) == NICE
    async with proxied(database_url) as proxy:
        # The client at this port is the proxy: the process with this pid may be another one.
        elsewhere = connect(proxy.url, pool_size=1)
        assert os.getpriority(os.PRIO_PROCESS, await directly(elsewhere)) < NICE
        await elsewhere.dispose()
    await direct.dispose()


async def test_behind_a_pooler_the_role_has_to_have_the_settings(database_url: str) -> None:
    async with proxied(database_url, poses=True) as pooler:
        engine = connect(pooler.url, pool_size=1)
        with pytest.raises(LedgerUnavailable, match="SET plan_cache_mode = 'force_generic_plan'"):
            await directly(engine)
        database = make_url(database_url).database
        direct = connect(database_url, pool_size=1)
        for name, value in {**SESSION, "TimeZone": "Etc/UTC"}.items():
            await Direct(direct).rows(text(f"ALTER DATABASE {database} SET {name} = '{value}'"), {})
        assert await directly(engine)
        assert behind_pooler(engine)
        for opened in (engine, direct):
            await opened.dispose()


async def test_days_are_those_of_utc_in_a_server_with_another_time_zone(database_url: str) -> None:
    database = make_url(database_url).database
    engine = connect(database_url, pool_size=1)
    zone = f"ALTER DATABASE {database} SET timezone = 'America/New_York'"
    await Direct(engine).rows(text(zone), {})
    await engine.dispose()
    days = "SELECT DATE '2030-03-01' = TIMESTAMPTZ '2030-03-01T00:00Z' AS same"
    [row] = await Direct(engine).rows(text(days), {})
    assert row.same
    await engine.dispose()


async def slow_directly(engine: AsyncEngine) -> None:
    await Direct(engine).rows(SLOW, {})


async def slow_through_sqlalchemy(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(SLOW)


@pytest.mark.parametrize("ask", [slow_directly, slow_through_sqlalchemy])
async def test_a_statement_ends_with_the_task_that_asked(
    database_url: str, ask: Callable[[AsyncEngine], Awaitable[None]]
) -> None:
    """Cancelling the task, for example because a client disconnects, cancels its statement."""
    engine, other = connect(database_url, pool_size=1), connect(database_url, pool_size=1)
    running = text(
        "SELECT count(*) AS running FROM pg_stat_activity"
        " WHERE datname = current_database() AND query = :query AND state = 'active'"
    )

    async def begun() -> bool:
        return bool((await Direct(other).rows(running, {"query": SLOW.text}))[0].running)

    async def ended() -> bool:
        return not await begun()

    asking = asyncio.ensure_future(ask(engine))
    await wait_until(begun, within_s=WITHIN_S, what="the statement under way")
    asking.cancel()
    await wait_until(ended, within_s=WITHIN_S, what="its end in the server")
    with pytest.raises(asyncio.CancelledError):
        await asking
    for opened in (engine, other):
        await opened.dispose()
