"""Undo of an event whose statement was later than one that arrived after it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict
from pipeline.ledger import tables
from pipeline.stores import Ledger
from tests.integration.events.test_undo import Script, does, memory_of, says, stored
from tests.support.api_service import Service, serving
from tests.support.engine import Engine

ROME, PARIS = "User lives in Rome", "User lives in Paris"
BERN, PORTO = "User lives in Bern", "User lives in Porto"


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        built.engine.with_model(RulesModel())
        yield built


async def successors(engine: Engine) -> dict[str, str | None]:
    """The text of the memory that superseded each one, by its text."""
    own, other = tables.memories, tables.memories.alias("other")
    query = select(own.c.text, other.c.text.label("by")).outerjoin(
        other, other.c.id == own.c.superseded_by
    )
    async with engine.ledger.engine.connect() as connection:
        return {row.text: row.by for row in await connection.execute(query)}


async def test_a_statement_that_the_undone_add_superseded_is_shown_again(service: Service) -> None:
    engine = service.engine
    add = await says(engine, "I live in Bern.", 10)
    late = await says(engine, "I moved to Rome.", 5)
    assert await engine.texts() == [BERN]
    undone = await engine.undo(add)
    assert await engine.texts() == [ROME]
    [row] = await service.listed()
    assert (undone.gone, [str(key) for key in undone.back]) == (
        [await memory_of(engine, add)],
        [row["id"]],
    )
    history = (await service.client.get(f"/v1/memories/{row['id']}/history/")).json()
    assert [(entry["event"], entry["new_memory"]) for entry in history] == [
        ("NOOP", ""),
        ("ADD", ROME),
    ]
    edges = {(edge.relation, edge.destination) for edge in await engine.relations("lives Rome")}
    assert edges == {("lives_in", "Rome")}
    await engine.undo(late)
    assert await engine.texts() == []


async def test_of_several_late_statements_of_a_slot_the_newest_is_shown(engine: Engine) -> None:
    add = await says(engine, "I live in Bern.", 20)
    paris = await says(engine, "I moved to Paris.", 10)
    await says(engine, "I moved to Rome.", 5)
    await engine.undo(add)
    assert await engine.texts() == [PARIS]
    assert (await successors(engine))[ROME] == PARIS
    await engine.undo(paris)
    assert await engine.texts() == [ROME]


async def test_a_late_statement_supersedes_the_older_text_that_an_undo_restores(
    service: Service,
) -> None:
    engine = service.engine
    first = await says(engine, "I live in Porto.", 1)
    moved = await says(engine, "I moved to Bern.", 10)
    late = await says(engine, "I moved to Rome.", 5)
    undone = await engine.undo(moved)
    assert await engine.texts() == [ROME]
    assert (await successors(engine))[PORTO] == ROME
    assert (len(undone.gone), len(undone.back)) == (1, 1)
    body = {"filters": {"user_id": "maya"}}
    for day, text in ((3, PORTO), (7, ROME)):
        at = {**body, "valid_at": f"2026-03-0{day}"}
        answer = (await service.client.post("/v3/memories/", json=at)).json()
        assert [row["memory"] for row in answer["results"]] == [text]
    await engine.undo(late)
    assert await engine.texts() == [PORTO]
    await engine.undo(first)
    assert await engine.texts() == []


async def test_a_statement_older_than_the_restored_text_stays_superseded(engine: Engine) -> None:
    await says(engine, "I live in Porto.", 5)
    moved = await says(engine, "I moved to Bern.", 10)
    await says(engine, "I moved to Rome.", 1)
    await engine.undo(moved)
    assert await engine.texts() == [PORTO]
    assert (await successors(engine))[ROME] == PORTO


async def test_a_memory_that_a_person_pinned_is_not_replaced(service: Service) -> None:
    engine = service.engine
    first = await says(engine, "I live in Porto.", 1)
    moved = await says(engine, "I moved to Bern.", 10)
    await says(engine, "I moved to Rome.", 5)
    table = tables.memories
    async with engine.ledger.engine.begin() as connection:
        memory_id = await memory_of(engine, first)
        await connection.execute(table.update().where(table.c.id == memory_id).values(pinned=True))
    await engine.undo(moved)
    assert await engine.texts() == [PORTO]


@pytest.mark.parametrize("deleted", [False, True], ids=["stored", "deleted"])
async def test_a_text_that_is_stored_again_or_that_a_person_deleted_stays_retired(
    service: Service, deleted: bool
) -> None:
    engine = service.engine
    add = await says(engine, "I live in Bern.", 10)
    await says(engine, "I moved to Rome.", 5)
    again = await does(engine, ROME, infer=False)
    if deleted:
        memory_id = await memory_of(engine, again)
        await service.client.delete(f"/v1/memories/{memory_id}/")
    await engine.undo(add)
    assert await engine.texts() == ([] if deleted else [ROME])


async def test_a_change_of_the_statement_is_undone_to_it(engine: Engine) -> None:
    add = await says(engine, "I live in Bern.", 10)
    late = await says(engine, "I moved to Rome.", 5)
    await engine.undo(add)
    moved = await says(engine, "I moved to Paris.", 15)
    assert await engine.texts() == [PARIS]
    await engine.undo(moved)
    assert await engine.texts() == [ROME]
    await engine.undo(late)
    assert await engine.texts() == []


async def test_a_memory_that_another_was_merged_into_since_is_in_the_way(engine: Engine) -> None:
    engine.with_model(Script())
    await does(engine, "tea.")
    rum = await does(engine, "rum.")
    merged = await does(engine, "tea. > rum.")
    assert await stored(engine) == ["rum."]
    with pytest.raises(Conflict, match=f"was merged into it since by event {merged}"):
        await engine.undo(rum)
    assert (await engine.undo(rum, force=True)).gone == []
