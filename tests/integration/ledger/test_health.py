"""Faults of a ledger: `memlane doctor` names them, and `memlane repair` ends them."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from deploy.cli import ledger_checks, repair
from deploy.cli.findings import CheckStatus
from pipeline.domain.events import Status
from pipeline.health.store import LedgerHealth
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.settings import Settings
from tests.support.engine import Engine
from tests.support.recount import drift
from tests.support.stack import wait_until


async def faults(url: str) -> dict[str, str]:
    """Texts of the checks that are not OK, by check."""
    findings = await ledger_checks.examine(url, Settings())
    assert findings
    return {f.check: f.text for f in findings if f.status is not CheckStatus.OK}


async def execute(engine: Engine, *statements: str) -> None:
    single = engine.ledger.engine.execution_options(isolation_level="AUTOCOMMIT")
    async with single.connect() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def cut_off(engine: Engine, url: str, command: str, *, index: str) -> None:
    """Start to build an index beside a writer that does not end, and cancel it."""
    builder = connect(url, pool_size=1, name="builder", limits=UNLIMITED)
    single = builder.execution_options(isolation_level="AUTOCOMMIT")

    async def build() -> None:
        async with single.connect() as connection:
            await connection.execute(text(command))

    async def exists() -> bool:
        async with engine.ledger.engine.begin() as connection:
            return await connection.scalar(text(f"SELECT to_regclass('{index}')")) is not None

    building = asyncio.create_task(build())
    await wait_until(exists, within_s=60, what=f"the entry of {index}")
    await execute(
        engine,
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'builder'",
    )
    with pytest.raises(LedgerUnavailable):
        await building
    await builder.dispose()


async def test_a_healthy_ledger_passes_every_check(engine: Engine, database_url: str) -> None:
    await engine.add("I live in Turku.", "My sister is Ana.")
    await engine.drain()
    findings = await ledger_checks.examine(database_url, Settings())
    assert [f.check for f in findings] == [
        *("schema", "clock", "connections", "indexes", "lanes", "books", "seals")
    ]
    assert await faults(database_url) == {}
    assert await repair.run(database_url, dry_run=False) == ["Nothing to repair."]


async def test_indexes_of_interrupted_builds_are_found_and_built(
    engine: Engine, database_url: str
) -> None:
    await execute(engine, "DROP INDEX ix_lanes_user_shown, ix_memories_user_shown")
    writer = connect(database_url, pool_size=1, limits=UNLIMITED)
    async with writer.begin() as connection:
        await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        await connection.execute(text("LOCK TABLE lanes IN ROW EXCLUSIVE MODE"))
        create = "CREATE INDEX CONCURRENTLY ix_lanes_user_shown ON lanes (project_id, user_id)"
        await cut_off(engine, database_url, create, index="ix_lanes_user_shown")
        again = "REINDEX INDEX CONCURRENTLY ix_lanes_due"
        await cut_off(engine, database_url, again, index="ix_lanes_due_ccnew")
    await writer.dispose()
    assert await faults(database_url) == {
        "indexes": "invalid: ix_lanes_user_shown; missing: ix_memories_user_shown;"
        " left by a build: ix_lanes_due_ccnew"
    }
    planned = await repair.run(database_url, dry_run=True)
    assert planned == [
        "would drop index ix_lanes_due_ccnew",
        "would rebuild index ix_lanes_user_shown",
        "would create index ix_memories_user_shown",
    ]
    assert list(await faults(database_url)) == ["indexes"]
    assert await repair.run(database_url, dry_run=False) == [
        line.removeprefix("would ") for line in planned
    ]
    assert await faults(database_url) == {}


async def test_idle_lanes_with_events_are_queued(engine: Engine, database_url: str) -> None:
    stranded = await engine.add("I live in Turku.")
    late = await engine.add("I live in Oulu.", user_id="ana")
    engine.hints.waiting.clear()
    await engine.pass_time(1_000)
    await execute(
        engine,
        "UPDATE lanes SET state = 'IDLE', due_at = NULL"
        f" WHERE id = '{engine.scope('maya').lane_id}'",
    )
    assert (await faults(database_url))["lanes"] == "1 idle with open events"
    assert await repair.run(database_url, dry_run=False) == [
        "queue 1 idle lanes with events",
        "queue 1 overdue lanes again",
    ]
    assert await engine.sweep() == 2
    await engine.drain()
    for event_id in (stranded, late):
        assert (await engine.event(event_id)).status is Status.SUCCEEDED
    assert await faults(database_url) == {}


async def test_overdue_lanes_are_named_with_their_age(engine: Engine, database_url: str) -> None:
    await engine.add("I live in Turku.")
    await engine.pass_time(1_000)
    lanes = await LedgerHealth(engine.ledger.engine).lanes()
    assert (lanes.overdue, lanes.stranded) == (1, 0)
    assert lanes.oldest_s > 900
    assert (await faults(database_url))["lanes"].startswith("1 overdue, the oldest for 9")


async def test_wrong_counts_are_corrected_while_events_are_accepted(
    engine: Engine, database_url: str
) -> None:
    for user in ("maya", "ana"):
        await engine.add("I live in Turku.", "I am allergic to peanuts.", user_id=user)
    await engine.drain()
    await engine.ledger.balance.fold()
    await execute(
        engine,
        "UPDATE books SET amount = amount + 5 WHERE kind = 'SUCCEEDED'",
        "DELETE FROM books WHERE kind = 'user' AND owner = 'ana'",
        "UPDATE books SET amount = 7 WHERE kind = 'users'",
        "INSERT INTO books (project_id, kind, amount)"
        " SELECT project_id, 'PENDING', 3 FROM books LIMIT 1",
    )
    assert len(await drift(engine.ledger.engine)) >= 4
    assert "differ" in (await faults(database_url))["books"]

    async def accept() -> None:
        for number in range(20):
            await engine.add(f"I have {number} cats.", user_id=f"user-{number}")

    lines, _ = await asyncio.gather(repair.run(database_url, dry_run=False), accept())
    assert len(lines) == 1
    assert lines[0].startswith("correct ")
    assert await drift(engine.ledger.engine) == []
    assert "books" not in await faults(database_url)


async def test_a_ledger_of_another_release_is_not_examined(
    engine: Engine, database_url: str
) -> None:
    await execute(engine, "UPDATE alembic_version SET version_num = '0001'")
    assert list(await faults(database_url)) == ["schema"]
    with pytest.raises(Exception, match="not that of this release"):
        await repair.run(database_url, dry_run=False)
