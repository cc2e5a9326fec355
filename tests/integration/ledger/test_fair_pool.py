"""Connections of a pool: projects that wait for one take turns."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.engine import SessionLimits, connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.fair_pool import take_turns_as
from pipeline.ledger.statements import Direct

ONE = text("SELECT 1 AS one")
ENDED = text("SELECT pg_terminate_backend(pg_backend_pid())")
SLOW = text("SELECT pg_sleep(600)")
WRONG = text("SELECT 1 / 0")
REQUESTS = 40


async def answered(engine: AsyncEngine, project: str, order: list[str]) -> None:
    """Read twice, as a request of the project does."""
    take_turns_as(project)
    for _ in range(2):
        await Direct(engine).row(ONE, {})
    order.append(project)


async def test_a_request_waits_for_few_of_another_projects_statements(database_url: str) -> None:
    engine = connect(database_url, pool_size=1)
    order: list[str] = []
    async with engine.connect():
        requests = [
            asyncio.create_task(answered(engine, project, order))
            for project in ["many"] * REQUESTS + ["one"]
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*requests)
    assert order.index("one") <= 2
    await engine.dispose()


async def test_a_project_has_a_part_of_the_connections_while_another_is_active(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.fair_slots.ACTIVE_S", 3_600.0)
    engine = connect(database_url, pool_size=8)
    took: list[str] = []

    async def hold(project: str, until: asyncio.Event) -> None:
        take_turns_as(project)
        async with engine.connect():
            took.append(project)
            await until.wait()

    async with AsyncExitStack() as opened:
        for _ in range(8):
            await opened.enter_async_context(engine.connect())
    end = asyncio.Event()
    await answered(engine, "one", [])
    many = [asyncio.create_task(hold("many", end)) for _ in range(6)]
    for _ in range(3):
        await answered(engine, "one", [])
    assert took == ["many"] * 2
    end.set()
    await asyncio.gather(*many)
    await engine.dispose()


async def test_a_request_that_ends_while_it_waits_keeps_no_connection(database_url: str) -> None:
    engine = connect(database_url, pool_size=1)
    async with engine.connect():
        waiting = [asyncio.create_task(answered(engine, "many", [])) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), asyncio.CancelledError, type(None)]
    order: list[str] = []
    await answered(engine, "one", order)
    assert order == ["one"]
    await engine.dispose()


async def test_a_server_that_is_gone_leaves_no_slot_taken(database_url: str) -> None:
    engine = connect(database_url.rpartition("/")[0] + "/nothing", pool_size=2)
    for _ in range(5):  # more than there are slots
        with pytest.raises(LedgerUnavailable, match="nothing"):
            await Direct(engine).row(ONE, {})
    await engine.dispose()


async def test_each_slot_comes_back_once_however_a_connection_ends(database_url: str) -> None:
    engine = connect(database_url, pool_size=2, limits=SessionLimits(0.1))

    async def fails(statement: TextClause) -> None:
        with pytest.raises(DBAPIError):
            await Direct(engine).row(statement, {})

    async def invalidated() -> None:
        async with engine.connect() as connection:
            await connection.invalidate()

    ends = [fails(ENDED), fails(SLOW), fails(WRONG), invalidated()]
    cancelled = asyncio.create_task(fails(SLOW))
    await asyncio.gather(*ends)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    async with engine.connect(), engine.connect():  # as many as there are
        third = asyncio.create_task(answered(engine, "one", []))
        await asyncio.sleep(0)
        assert not third.done()
    await third
    await engine.dispose()
