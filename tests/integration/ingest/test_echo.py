"""An assistant that repeats a memory: it is never stored again, and no model decides about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions, Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.messages import Message, Role
from pipeline.domain.modes import Mode
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from pipeline.text.recalled import fenced
from tests.support.engine import Engine

MEMORIES = ("Maya lives in Bern with Tom", "Maya wohnt gern am See", "小雨住在成都")


@dataclass
class Parrot(RulesModel):
    """Each message is a fact, after its rewording; the facts that it decides about are recorded."""

    rewordings: dict[str, str] = field(default_factory=dict)
    decided: list[str] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(
            tuple(
                Fact(self.rewordings.get(text, text), spoken.source, spoken.message.role)
                for spoken in request.messages
                if (text := spoken.message.content)
            )
        )

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        self.decided += [fact.text for fact in facts]
        return Answer(
            tuple(Decision(n, Outcome.ADD, "New.", fact.text) for n, fact in enumerate(facts))
        )


@pytest.fixture
async def model(engine: Engine) -> Parrot:
    parrot = Parrot()
    engine.with_model(parrot)
    for memory in MEMORIES:
        await say(engine, (Role.USER, memory))
    parrot.decided.clear()
    return parrot


async def say(engine: Engine, *turns: tuple[Role, str], mode: Mode | None = None) -> UUID:
    event_id = await engine.send(
        engine.scope(), [Message(role, text) for role, text in turns], AddOptions(mode=mode)
    )
    await engine.drain()
    return event_id


@pytest.mark.parametrize("mode", [Mode.CONSOLIDATE, Mode.APPEND])
@pytest.mark.parametrize(
    ("spoken", "extracted"),
    [
        ("Maya lives in Bern with Tom!", "Maya lives in Bern with Tom!"),
        ("As you said, you live in Bern.", "The user lives in Bern"),
        ("I remember that Maya lives in Bern with Tom.", "Maya resides in Bern beside Tom"),
        ("Du wohnst am See.", "Der Nutzer wohnt gern am See"),
        ("我记得你住在成都。", "用户住在成都"),
    ],
)
async def test_an_echo_is_a_noop_without_a_decision(
    engine: Engine, model: Parrot, spoken: str, extracted: str, mode: Mode
) -> None:
    model.rewordings[spoken] = extracted
    event = await engine.event(await say(engine, (Role.ASSISTANT, spoken), mode=mode))
    [line] = event.receipt
    assert (line.outcome, line.memory_id is None) == (Outcome.NOOP, False)
    assert model.decided == []
    assert len(await engine.texts()) == len(MEMORIES)


async def test_an_echo_of_the_same_turn_is_not_stored_beside_it(
    engine: Engine, model: Parrot
) -> None:
    turns = ((Role.USER, "Maya works at Bosch"), (Role.ASSISTANT, "You work at Bosch"))
    await say(engine, *turns)
    assert (await engine.texts())[len(MEMORIES) :] == ["Maya works at Bosch"]


async def test_what_the_assistant_adds_is_decided(engine: Engine, model: Parrot) -> None:
    more = "Maya lives in Bern with Tom and 2 cats"
    await say(engine, (Role.ASSISTANT, more))
    assert model.decided == [more]


async def test_a_user_may_say_less_than_a_memory(engine: Engine, model: Parrot) -> None:
    await say(engine, (Role.USER, "Maya lives in Bern"))
    assert model.decided == ["Maya lives in Bern"]


@pytest.mark.parametrize("mode", [Mode.CONSOLIDATE, Mode.APPEND])
async def test_recalled_memories_of_an_assistant_are_not_extracted(
    engine: Engine, model: Parrot, mode: Mode
) -> None:
    block = fenced("[1] 2026-05-07 Maya lives in Bern with Tom.")
    event = await engine.event(await say(engine, (Role.ASSISTANT, block), mode=mode))
    assert event.receipt == []
    assert model.decided == []
