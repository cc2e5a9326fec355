"""Structure of memories: stored with the text, changed with it, and restored by an undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select, text, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, FactKind, MemoryType, Neighbour, Outcome
from pipeline.domain.memories import Memory, structure
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import memories, memory_history
from pipeline.memories.editing import MemoryEdit
from pipeline.memories.rows import as_memory
from pipeline.memories.service import edit
from pipeline.ports import ExtractionRequest
from tests.support.engine import Engine

MAY, JUNE = datetime(2025, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
BERN: dict[str, Any] = {
    "speaker": "Maya",
    "kind": FactKind.PERSONAL_DETAIL,
    "subject": "Maya",
    "attribute": "residence",
    "valid_from": MAY,
    "confidence": 0.9,
}
STAY: dict[str, Any] = {
    "kind": FactKind.ACTIVITY,
    "memory_type": MemoryType.EPISODIC,
    "subject": "Maya",
    "attribute": "residence",
    "valid_from": JUNE,
}


@dataclass
class Scripted(RulesModel):
    """Model that gives each fact the next values, and updates the first memory it is shown."""

    values: list[dict[str, Any]] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        [sourced] = request.messages
        text = sourced.message.content
        return Answer((Fact(text, sourced.source, **self.values.pop(0)),))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        [fact], target = facts, neighbours[0].memory_id
        return Answer((Decision(0, Outcome.UPDATE, "Newer.", fact.text, target),))


async def only(engine: Engine) -> Memory:
    """The only memory, in any state."""
    async with engine.ledger.engine.connect() as connection:
        return as_memory((await connection.execute(select(memories))).one())


async def slots(engine: Engine) -> list[str | None]:
    async with engine.ledger.engine.connect() as connection:
        return list((await connection.scalars(select(memories.c.slot))).all())


async def add(engine: Engine, *texts: str) -> list[UUID]:
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    return ids


async def test_a_memory_keeps_the_structure_of_its_fact(engine: Engine) -> None:
    engine.with_model(Scripted(values=[BERN]))
    await add(engine, "Maya lives in Bern.")
    memory = await only(engine)
    assert structure(memory) == {
        "kind": FactKind.PERSONAL_DETAIL,
        "memory_type": MemoryType.SEMANTIC,
        "subject": "Maya",
        "attribute": "residence",
        "cardinality": None,
        "speaker": "Maya",
        "confidence": 0.9,
    }
    assert memory.valid_from == MAY < memory.said_at
    assert memory.created_at == memory.said_at
    assert await slots(engine) == [memory.slot] == ["maya · residence"]


async def test_a_fact_without_a_time_is_valid_from_its_statement(engine: Engine) -> None:
    engine.with_model(Scripted(values=[{}]))
    await add(engine, "Maya lives in Bern.")
    memory = await only(engine)
    assert memory.valid_from == memory.said_at
    assert await slots(engine) == [None]


async def test_an_undo_restores_times_and_structure(engine: Engine) -> None:
    engine.with_model(Scripted(values=[BERN, STAY]))
    await add(engine, "Maya lives in Bern.")
    before = await only(engine)
    [second] = await add(engine, "Maya lives in Oslo.")
    changed = await only(engine)
    assert (changed.kind, changed.memory_type) == (FactKind.ACTIVITY, MemoryType.EPISODIC)
    assert changed.valid_from == JUNE
    await engine.undo(second)
    after = await only(engine)
    assert replace(after, version=1, updated_at=before.updated_at) == before


async def test_an_undo_of_an_add_keeps_the_structure_of_the_retired_memory(engine: Engine) -> None:
    engine.with_model(Scripted(values=[BERN]))
    [event_id] = await add(engine, "Maya lives in Bern.")
    before = await only(engine)
    await engine.undo(event_id)
    after = await only(engine)
    assert (after.state, structure(after)) == ("RETIRED", structure(before))


async def test_a_new_text_about_another_matter_has_no_slot(engine: Engine) -> None:
    """The slot of the old text could make another statement replace the new one."""
    engine.with_model(Scripted(values=[BERN]))
    await add(engine, "Maya lives in Bern.")
    memory, services = await only(engine), engine.services

    async def change(**values: Any) -> None:
        await edit(
            engine.project.id,
            [MemoryEdit(memory.id, values)],
            editing=engine.ledger.editing,
            embedder=services.embedder,
            index=services.index,
        )

    await change(metadata={"n": 1})
    assert await slots(engine) == ["maya · residence"]
    await change(text="Maya lives in Porto (confirmed by phone).")
    assert await slots(engine) == ["maya · residence"]
    await change(text="Maya plays chess.")
    assert await slots(engine) == [None]
    assert (await only(engine)).kind is FactKind.PERSONAL_DETAIL


async def test_rows_of_the_previous_release_have_the_time_of_their_statement(
    engine: Engine,
) -> None:
    """Its workers write no `said_at`, and keep the time of the statement in `valid_from`."""
    engine.with_model(Scripted(values=[BERN, STAY]))
    await add(engine, "Maya lives in Bern.")
    copy = (
        "INSERT INTO memories (id, project_id, lane_id, text, text_hash, attributed_to, embedding,"
        " embedder, valid_from) SELECT gen_random_uuid(), project_id, lane_id, 'Tea.', '\\x00',"
        " attributed_to, embedding, embedder, '2024-01-02Z' FROM memories RETURNING said_at"
    )
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(memory_history).values(said_at=None, structure=None))
        assert await connection.scalar(text(copy)) == datetime(2024, 1, 2, tzinfo=UTC)
        await connection.execute(delete(memories).where(memories.c.text == "Tea."))
        await connection.execute(update(memories).values(said_at=memories.c.valid_from))
    [second] = await add(engine, "Maya lives in Oslo.")
    await engine.undo(second)
    after = await only(engine)
    assert (after.text, after.said_at) == ("Maya lives in Bern.", MAY)
    assert after.kind is FactKind.OTHER
