"""Edits and restores that break a constraint: only a taken text is answered as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from sqlalchemy import text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import CHANGED_MEANWHILE, LEDGER_REFUSED
from pipeline.ledger.tables import memories
from pipeline.memories.editing import TEXT_TAKEN
from pipeline.memories.rows import text_columns
from tests.support.api_service import Service, error_of, serving, verbatim
from tests.support.engine import Engine
from tests.support.stack import wait_until

WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def refuse_writes(service: Service, condition: str) -> None:
    """Let each change of a memory raise this condition of PL/pgSQL."""
    clash = (
        "CREATE FUNCTION clash() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE {condition}; END $$",
        "CREATE TRIGGER clash BEFORE INSERT OR UPDATE ON memories EXECUTE FUNCTION clash()",
    )
    async with service.engine.ledger.engine.begin() as connection:
        for statement in clash:
            await connection.execute(text(statement))


@pytest.mark.parametrize(
    ("condition", "status", "code"),
    [
        ("check_violation", 500, LEDGER_REFUSED),
        ("not_null_violation", 500, LEDGER_REFUSED),
        ("foreign_key_violation", 503, "SERVICE_UNAVAILABLE"),
        ("unique_violation", 503, "SERVICE_UNAVAILABLE"),
    ],
)
@pytest.mark.parametrize("change", ["edit", "restore", "undo"])
async def test_another_constraint_is_not_taken_for_a_text_of_another_memory(
    service: Service, condition: str, status: int, code: str, change: str
) -> None:
    await verbatim(service, "I like tea.")
    [memory] = await service.listed()
    path = f"/v1/memories/{memory['id']}/"
    if change == "restore":
        assert (await service.client.put(path, json={"text": "I like rum."})).status_code == 200
    await refuse_writes(service, condition)
    match change:
        case "restore":
            answer = await service.client.post(f"{path}restore/", json={"version": 1})
        case "undo":
            answer = await service.client.post(f"/v1/event/{memory['event_id']}/undo/")
        case _:
            answer = await service.client.put(path, json={"text": "I like rum."})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (status == 503) == (error_of(answer) == CHANGED_MEANWHILE)


async def test_an_add_that_breaks_another_constraint_fails_at_once(service: Service) -> None:
    await refuse_writes(service, "check_violation")
    event = await service.event(await service.add("I like tea."))
    assert (event["status"], event["code"]) == ("FAILED", "INTERNAL")
    assert "SQLSTATE 23514" in event["error"]


async def test_a_text_that_another_write_stores_at_the_same_time_is_a_conflict(
    service: Service,
) -> None:
    await verbatim(service, "I like tea.", "I like rum.")
    first, second = [memory["id"] for memory in await service.listed()]
    async with service.engine.ledger.engine.connect() as other:
        await _give(other, UUID(first), "I like cider.")
        path = f"/v1/memories/{second}/"
        editing = asyncio.create_task(service.client.put(path, json={"text": "I like cider."}))
        async with service.engine.ledger.engine.connect() as watching:

            async def waits() -> bool:
                return bool(await watching.scalar(WAITING))

            await wait_until(waits, within_s=10, what="the edit to wait for the other write")
        await other.commit()
    answer = await editing
    assert (answer.status_code, error_of(answer)) == (409, TEXT_TAKEN)


async def _give(connection: AsyncConnection, memory_id: UUID, words: str) -> None:
    """Give a memory a text, without a commit."""
    await connection.execute(
        update(memories).where(memories.c.id == memory_id).values(**text_columns(words))
    )
