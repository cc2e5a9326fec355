"""Decisions of people about the same memories at the same time: one follows the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest
from sqlalchemy import select, text

from pipeline.ledger.tables import conflict_members, conflicts, memories
from pipeline.memories.editing import MemoryEdit
from tests.integration.suggestions.test_shown_states import contested, open_conflicts
from tests.support.api_service import Service, serving
from tests.support.engine import Engine
from tests.support.shown_states import wrong_marks
from tests.support.stack import wait_until

WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
# The edit of a memory with this mark waits for the test before it changes the memory.
GATE, MARK = 4711, "waits"
GATED = (
    "CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS"
    f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NEW; END $$",
    "CREATE TRIGGER gate BEFORE UPDATE ON memories FOR EACH ROW"
    f" WHEN (NEW.metadata ? '{MARK}') EXECUTE FUNCTION pass_gate()",
)


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def until_waiting(service: Service, number: Callable[[], int]) -> None:
    """Wait until this number of transactions waits for locks."""

    async def waiting() -> bool:
        async with service.engine.ledger.engine.connect() as connection:
            return bool(await connection.scalar(WAITING) == number())

    await wait_until(waiting, within_s=30, what="transactions that wait for locks")


async def ids_by_text(service: Service) -> dict[str, UUID]:
    return {row["memory"]: UUID(row["id"]) for row in await service.listed()}


async def test_a_memory_that_is_restored_beside_the_resolution_of_its_conflict_is_part_of_it(
    service: Service,
) -> None:
    for drink in ("tea", "coffee", "cocoa"):
        await service.add(f"Maya likes {drink}")
    ids = await ids_by_text(service)
    conflict_id = await contested(service)
    first, deleted = ids["Maya likes tea"], ids["Maya likes cocoa"]
    await service.client.delete(f"/v1/memories/{deleted}/")
    restore, resolve = f"/v1/memories/{deleted}/restore/", f"/v1/conflicts/{conflict_id}/resolve/"
    async with service.engine.ledger.engine.begin() as holding:
        await holding.execute(select(conflicts.c.id).with_for_update())
        restored = asyncio.create_task(service.client.post(restore, json={"version": 1}))
        await until_waiting(service, lambda: 1)
        resolved = asyncio.create_task(service.client.post(resolve, json={"keep": str(first)}))
        await until_waiting(service, lambda: 2)
    for answer in (await restored, await resolved):
        assert answer.status_code == 200, answer.text
    assert await ids_by_text(service) == {"Maya likes tea": first}
    assert await open_conflicts(service) == []


async def test_edits_of_several_memories_that_cross_in_two_conflicts_are_both_carried_out(
    service: Service,
) -> None:
    """Each has changed a memory of one conflict when it comes to a memory of the other one."""
    drinks = ("tea", "coffee", "cocoa", "water")
    for drink in drinks:
        await service.add(f"Maya likes {drink}")
    ledger, project_id = service.engine.ledger, service.engine.project.id
    conflict_ids = [await contested(service), await contested(service)]
    async with ledger.engine.begin() as connection:
        first, second, third, fourth = await connection.scalars(
            select(memories.c.id).order_by(memories.c.id)
        )
        for conflict_id, pair in zip(conflict_ids, ({first, fourth}, {second, third}), strict=True):
            await connection.execute(
                conflict_members.delete().where(
                    conflict_members.c.conflict_id == conflict_id,
                    conflict_members.c.memory_id.not_in(pair)
                    | conflict_members.c.against_id.not_in(pair),
                )
            )
        for statement in GATED:
            await connection.execute(text(statement))

    def edit(mine: UUID, other: UUID) -> asyncio.Task[object]:
        edits = [MemoryEdit(mine, {"metadata": {}}), MemoryEdit(other, {"metadata": {MARK: 1}})]
        return asyncio.create_task(ledger.editing.edit(project_id, edits, embedder="fake/hash"))

    async with ledger.engine.begin() as gate:
        await gate.execute(text(f"SELECT pg_advisory_xact_lock({GATE})"))
        editing = [edit(first, second)]
        await until_waiting(service, lambda: 1)
        editing.append(edit(third, fourth))
        await until_waiting(service, lambda: 2)
    await asyncio.gather(*editing)
    marked = [row["memory"] for row in await service.listed() if MARK in (row["metadata"] or {})]
    assert len(marked) == 2
    assert await wrong_marks(ledger.engine) == []
