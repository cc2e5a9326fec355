"""Edits of people while an event is about to change the same memory: the person's edit wins."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy import func, select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions, StageName, Status
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer, Usage
from pipeline.ledger.tables import memories, stage_runs
from pipeline.memories import service as use_cases
from pipeline.memories.editing import MemoryEdit
from tests.support.engine import Engine

CORRECTED = "User lives in Hamburg by law (corrected by support)"


class Deciding(RulesModel):
    """Model that makes the same decision on every memory, and counts as a paid call."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome
        self.shown: list[list[str]] = []

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        self.shown.append([neighbour.text for neighbour in neighbours])
        [target, *_] = neighbours
        decision = Decision(0, self.outcome, "So it is.", facts[0].text, target.memory_id)
        return Answer((decision,), Usage("fake/deciding", 1, 10, 1))


async def stored(engine: Engine, text: str) -> UUID:
    """Add this message; return the id of the only memory."""
    await engine.add(text)
    await engine.drain()
    async with engine.ledger.engine.connect() as connection:
        [memory_id] = (await connection.scalars(select(memories.c.id))).all()
    return UUID(str(memory_id))


async def edit(engine: Engine, memory_id: UUID, text: str) -> None:
    await use_cases.edit(
        engine.project.id,
        [MemoryEdit(memory_id, {"text": text})],
        editing=engine.ledger.editing,
        embedder=engine.services.embedder,
        index=engine.services.index,
    )


@pytest.mark.parametrize(
    ("outcome", "news"),
    [
        (Outcome.UPDATE, "I moved to Munich."),
        (Outcome.DELETE, "I no longer live in Hamburg."),
        (Outcome.NOOP, "I moved to Munich."),
    ],
)
async def test_a_decision_about_the_text_before_an_edit_is_repeated(
    engine: Engine, outcome: Outcome, news: str
) -> None:
    memory_id = await stored(engine, "I live in Berlin.")
    model = Deciding(outcome)
    engine.with_model(model)
    event_id = await engine.add(news)
    await engine.run_until(StageName.APPLY)
    await edit(engine, memory_id, CORRECTED)
    await engine.step()
    assert engine.hints.waiting[0].stage is StageName.RETRIEVE
    assert await engine.texts() == [CORRECTED]  # the decision on the old text was not applied
    await engine.drain()
    assert model.shown == [["User lives in Berlin"], [CORRECTED]]
    event = await engine.event(event_id)
    [line] = event.receipt
    if outcome is Outcome.NOOP:
        assert line.outcome == "NOOP"
    else:  # decided on the new text, and withheld: a person has written it
        assert line.outcome == "ADD"
        assert line.reason.endswith(f"({outcome} withheld: A person has edited this memory.)")
        assert CORRECTED in await engine.texts()
    # Consolidate was paid for twice; extract ran once.
    assert sum(run.calls for run in event.stages if run.stage == "consolidate") == 2
    assert [run.code for run in event.stages].count("OUTDATED") == 2
    async with engine.ledger.engine.connect() as connection:
        runs = select(func.count()).where(stage_runs.c.stage == "extract")
        assert await connection.scalar(runs) == 2  # one per event


async def test_a_fact_is_added_beside_a_memory_that_a_person_keeps_editing(
    engine: Engine,
) -> None:
    memory_id = await stored(engine, "I live in Berlin.")
    engine.with_model(Deciding(Outcome.UPDATE))
    event_id = await engine.add("I moved to Munich.")
    text = ""
    while engine.hints.waiting:
        if engine.hints.waiting[0].stage is StageName.APPLY:
            text += "!x"
            await edit(engine, memory_id, f"User lives in Bonn{text}")
        await engine.step()
    event = await engine.event(event_id)
    assert event.status is Status.SUCCEEDED
    [line] = event.receipt
    assert line.outcome == "ADD"
    assert line.reason.endswith("(A person has changed its memory.)")
    assert sorted(await engine.texts()) == sorted([f"User lives in Bonn{text}", line.text])


async def test_an_exact_repeat_of_a_text_that_was_edited_away_is_stored(engine: Engine) -> None:
    memory_id = await stored(engine, "I live in Berlin.")
    await engine.add("I live in Berlin.")
    await engine.run_until(StageName.APPLY)
    await edit(engine, memory_id, CORRECTED)
    await engine.drain()
    assert "User lives in Berlin" in await engine.texts()


async def test_a_memory_deleted_while_its_event_relates_leaves_no_relation(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.run_until(StageName.RELATE)
    async with engine.ledger.engine.connect() as connection:
        [memory_id] = (await connection.scalars(select(memories.c.id))).all()
    await engine.ledger.editing.retire(engine.project.id, [memory_id])
    await engine.drain()
    assert await engine.texts() == []
    assert await engine.relations("Berlin") == []


async def test_what_others_said_in_the_same_batch_is_related_all_the_same(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.add("I like jazz.")
    await engine.run_until(StageName.RELATE)
    query = select(memories.c.id).where(memories.c.text.like("%Berlin%"))
    async with engine.ledger.engine.connect() as connection:
        [memory_id] = (await connection.scalars(query)).all()
    await engine.ledger.editing.retire(engine.project.id, [memory_id])
    await engine.drain()
    assert await engine.relations("Berlin") == []
    assert len(await engine.relations("jazz")) == 1
