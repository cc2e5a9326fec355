"""Repeated turns: the receipt names what is stored, and no model is called."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from sqlalchemy import select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions
from pipeline.domain.facts import Fact
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import memories
from pipeline.memories import service as use_cases
from pipeline.memories.editing import MemoryEdit
from pipeline.ports import ExtractionRequest
from tests.support.engine import Engine


@dataclass
class Listening(RulesModel):
    """Model that records the messages it reads; `answers`: a fact for each text, by that text."""

    read: list[list[str]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.read.append([sourced.message.content for sourced in request.messages])
        if not self.answers:
            return await super().extract(request)
        return Answer(
            tuple(Fact(self.answers[s.message.content], s.source) for s in request.messages)
        )


@pytest.fixture
def model(engine: Engine) -> Listening:
    listening = Listening()
    engine.with_model(listening)
    return listening


async def add(engine: Engine, *texts: str, options: AddOptions | None = None) -> list[str]:
    """Add a turn, process it, and return the outcomes on its receipt."""
    event_id = await engine.add(*texts, options=options or AddOptions())
    await engine.drain()
    return [outcome for outcome, _ in await engine.outcomes(event_id)]


async def test_a_repeated_turn_calls_no_model(engine: Engine, model: Listening) -> None:
    turn = ("I live in Berlin.", "I like jazz.")
    assert await add(engine, *turn) == ["ADD", "ADD"]
    assert await add(engine, "I play chess.") == ["ADD"]
    assert await add(engine, *turn) == ["NOOP", "NOOP"]
    assert len(model.read) == 2
    assert len(await engine.texts()) == 3


async def test_of_a_batch_the_model_reads_what_is_new(engine: Engine, model: Listening) -> None:
    await add(engine, "I live in Berlin.")
    ids = [await engine.add(text) for text in ("I play chess.", "I live in Berlin.", "I like tea.")]
    await engine.drain()
    assert model.read[1:] == [["I play chess.", "I like tea."]]
    receipts = [await engine.outcomes(event_id) for event_id in ids]
    assert [outcome for lines in receipts for outcome, _ in lines] == ["ADD", "NOOP", "ADD"]


async def test_a_relative_time_is_another_day_each_time(engine: Engine, model: Listening) -> None:
    for _ in range(2):
        await add(engine, "I moved to Oslo yesterday.")
    assert len(model.read) == 2


async def test_an_answer_to_an_unknown_question_is_read_again(
    engine: Engine, model: Listening
) -> None:
    model.answers = {"Do you like tea?": "User was asked about tea", "Yes.": "User likes tea"}
    await add(engine, "Do you like tea?", "Yes.")
    await add(engine, "Yes.")
    await add(engine, "Yes.")
    assert len(model.read) == 3


async def test_a_turn_whose_memory_has_changed_is_read_again(
    engine: Engine, model: Listening
) -> None:
    await add(engine, "I live in Berlin.")
    async with engine.ledger.engine.connect() as connection:
        [memory_id] = (await connection.scalars(select(memories.c.id))).all()
    await use_cases.edit(
        engine.project.id,
        [MemoryEdit(memory_id, {"text": "User lives in Potsdam"})],
        editing=engine.ledger.editing,
        embedder=engine.services.embedder,
        index=engine.services.index,
    )
    await add(engine, "I live in Berlin.")
    assert len(model.read) == 2


async def test_other_options_make_another_turn(engine: Engine, model: Listening) -> None:
    await add(engine, "I live in Berlin.")
    await add(engine, "I live in Berlin.", options=AddOptions(metadata={"trip": 1}))
    assert len(model.read) == 2
