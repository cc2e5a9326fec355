"""The table of past states: complete, and filled from the history when a database is upgraded."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select, text, update

from pipeline.events.retention import Retention
from pipeline.ledger.tables import memories, past_states
from pipeline.ledger.tables.memories import NOT_KEPT
from tests.integration.versions.test_as_of import moved, now, service, texts
from tests.support.api_service import Service

__all__ = ["service"]


async def test_every_column_of_a_memory_is_kept_by_the_trigger(service: Service) -> None:
    await moved(service)
    names = [column.name for column in memories.columns if column.name not in NOT_KEPT]
    assert set(names) <= set(past_states.columns.keys())
    async with service.engine.ledger.engine.connect() as connection:
        body = await connection.scalar(
            text("SELECT prosrc FROM pg_proc WHERE proname = 'keep_past_state'")
        )
    # A trigger of its own sets `temporary`, so that workers of the release before keep it, too.
    written = [name for name in names if name != "temporary"]
    assert [name for name in written if f"OLD.{name}" not in str(body)] == []


async def test_only_a_change_that_a_reader_sees_leaves_a_past_state(service: Service) -> None:
    await moved(service)
    ledger = service.engine.ledger
    await service.engine.services.index.catch_up()
    async with ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(past_states)) == 1


async def test_states_that_were_replaced_long_ago_are_deleted(service: Service) -> None:
    await moved(service)
    engine = service.engine
    by = text("interval '400 days'")
    query = update(past_states).values(
        stored_at=past_states.c.stored_at - by, replaced_at=past_states.c.replaced_at - by
    )
    unlimited = Retention(engine.ledger.engine, keys_for=timedelta(days=1), outputs_for=None)
    assert await engine.retention.forget_past_states() == 0  # too young
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(query)
    assert await unlimited.forget_past_states() == 0  # no limit
    assert await engine.retention.forget_past_states() == 1
    assert await engine.retention.forget_past_states() == 0
    assert await texts(service, as_of=await now(service)) == ["User lives in Lisbon"]
