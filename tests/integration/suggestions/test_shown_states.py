"""Marks of suggestions and conflicts: what the API shows, also after changes at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict
from pipeline.domain.suggestions import SuggestionKind
from pipeline.ledger.tables import conflict_members, conflicts, lanes, memories, suggestions
from pipeline.suggestions.decisions import Acceptance
from tests.integration.suggestions.test_accepting import SUGGESTIONS, suggest, withheld
from tests.support.api_service import Service, serving
from tests.support.engine import Engine
from tests.support.shown_states import wrong_marks
from tests.support.stack import wait_until

WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def shown(service: Service, state: str) -> list[str]:
    answer = await service.client.get(SUGGESTIONS, params={"state": state})
    return [row["id"] for row in answer.json()["results"]]


async def test_a_deleted_addition_closes_its_suggestion_and_a_restore_opens_it(
    service: Service,
) -> None:
    row = await withheld(service)
    [added] = [m["id"] for m in await service.listed() if m["memory"] == "Maya lives in Porto"]
    assert await shown(service, "OPEN") == [row["id"]]
    await service.client.delete(f"/v1/memories/{added}/")
    assert (await shown(service, "OPEN"), await shown(service, "INVALID")) == ([], [row["id"]])
    restored = await service.client.post(f"/v1/memories/{added}/restore/", json={"version": 1})
    assert restored.status_code == 200, restored.text
    assert (await shown(service, "OPEN"), await shown(service, "INVALID")) == ([row["id"]], [])


async def test_an_acceptance_beside_the_deletion_of_the_addition_writes_nothing(
    service: Service,
) -> None:
    """A request has read the suggestion before the deletion, and writes after it."""
    row = await withheld(service)
    engine = service.engine
    [vector] = await engine.services.embedder.embed([row["proposed_text"]])
    name = engine.services.embedder.name
    accepted = Acceptance(UUID(row["id"]), row["proposed_text"], vector, name, uuid4())
    [added] = [m["id"] for m in await service.listed() if m["memory"] == "Maya lives in Porto"]
    await service.client.delete(f"/v1/memories/{added}/")
    with pytest.raises(Conflict, match="deleted"):
        await engine.ledger.decisions.accept(engine.project.id, accepted)
    assert [m["memory"] for m in await service.listed()] == ["Maya lives in Bern with Tom"]


async def test_a_suggestion_of_a_memory_that_changes_at_the_same_time_is_outdated(
    service: Service,
) -> None:
    engine = service.engine.ledger.engine
    await service.add("Maya likes tea")
    [memory] = await service.listed()
    async with engine.begin() as changing:
        await changing.execute(update(memories).values(version=memories.c.version + 1))
        made = asyncio.create_task(suggest(service, SuggestionKind.DELETE, [memory["id"]]))
        await until_waiting(service)
    suggestion_id = await made
    assert (await shown(service, "OPEN"), await shown(service, "INVALID")) == ([], [suggestion_id])


async def test_a_memory_that_changes_while_a_suggestion_is_stored_outdates_it(
    service: Service,
) -> None:
    engine = service.engine.ledger.engine
    await service.add("Maya likes tea")
    [memory] = await service.listed()
    known = await suggest(service, SuggestionKind.DELETE, [memory["id"]])
    renewed = {"state": "OPEN", "reason": "So it still seems."}
    change = {"text": "Maya likes coffee"}
    async with engine.begin() as storing:
        await storing.execute(update(suggestions).values(renewed))
        changed = asyncio.create_task(
            service.client.put(f"/v1/memories/{memory['id']}/", json=change)
        )
        await until_waiting(service)
    assert (await changed).status_code == 200
    assert await shown(service, "INVALID") == [known]


async def test_two_statements_of_a_conflict_that_end_at_the_same_time_resolve_it(
    service: Service,
) -> None:
    engine = service.engine.ledger.engine
    for drink in ("tea", "coffee", "cocoa"):
        await service.add(f"Maya likes {drink}")
    conflict_id = await contested(service)
    async with engine.connect() as connection:
        first, second, third = (await connection.scalars(select(memories.c.id))).all()
        # The first contradicts the two others.
        apart = {second, third}
        await connection.execute(
            conflict_members.delete().where(
                conflict_members.c.memory_id.in_(apart), conflict_members.c.against_id.in_(apart)
            )
        )
        await connection.commit()
    assert first not in apart
    assert await open_conflicts(service) == [str(conflict_id)]
    async with engine.begin() as ending:
        await retire(ending, second)
        ended = asyncio.create_task(retire_alone(service, third))
        await until_waiting(service)
    await ended
    assert await open_conflicts(service) == []
    assert await wrong_marks(engine) == []


async def test_a_resolution_beside_the_erasure_of_its_scope_is_not_found(service: Service) -> None:
    for drink in ("tea", "coffee"):
        await service.add(f"Maya likes {drink}")
    conflict_id = await contested(service)
    async with service.engine.ledger.engine.begin() as erasing:
        await erasing.execute(select(lanes.c.id).with_for_update())
        await erasing.execute(delete(conflicts))
        path = f"/v1/conflicts/{conflict_id}/resolve/"
        resolved = asyncio.create_task(service.client.post(path, json={"keep": "both"}))
        await until_waiting(service)
    assert (await resolved).status_code == 404


async def contested(service: Service, user_id: str = "maya") -> UUID:
    """Store a conflict between all memories of a user. Returns its id."""
    conflict_id = uuid4()
    async with service.engine.ledger.engine.begin() as connection:
        own = select(memories).where(memories.c.user_id == user_id)
        rows = (await connection.execute(own)).all()
        await connection.execute(
            insert(conflicts).values(
                id=conflict_id,
                project_id=service.engine.project.id,
                lane_id=rows[0].lane_id,
                slot="drink",
                event_id=rows[0].event_id,
            )
        )
        members = [
            {
                "conflict_id": conflict_id,
                "memory_id": mine.id,
                "against_id": other.id,
                "lane_id": mine.lane_id,
                "text_hash": mine.text_hash,
            }
            for mine in rows
            for other in rows
            if mine.id != other.id
        ]
        await connection.execute(insert(conflict_members), members)
    return conflict_id


async def open_conflicts(service: Service) -> list[Any]:
    answer = await service.client.get("/v1/conflicts/", params={"state": "OPEN"})
    return [row["id"] for row in answer.json()["results"]]


async def retire(connection: AsyncConnection, memory_id: UUID) -> None:
    values = {"state": "RETIRED", "version": memories.c.version + 1}
    await connection.execute(update(memories).where(memories.c.id == memory_id).values(values))


async def retire_alone(service: Service, memory_id: UUID) -> None:
    async with service.engine.ledger.engine.begin() as connection:
        await retire(connection, memory_id)


async def until_waiting(service: Service) -> None:
    """Wait until a transaction waits for the lock of another one."""

    async def waiting() -> bool:
        async with service.engine.ledger.engine.connect() as connection:
            return bool(await connection.scalar(text(WAITS)))

    await wait_until(waiting, within_s=10, what="a transaction that waits for a lock")
