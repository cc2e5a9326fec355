"""Attributes with one value at a time that no table lists: the extraction's word, the project's
list, and what the scope knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions
from pipeline.domain.facts import Fact
from pipeline.domain.filters import parse
from pipeline.domain.modes import Mode
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import memories
from pipeline.ports import ExtractionRequest
from pipeline.text.statements.slots import Cardinality, attribute_name
from tests.support.engine import Engine

ONE, SEVERAL = Cardinality.ONE, Cardinality.SEVERAL


@dataclass
class Worded(RulesModel):
    """Each line of a message is a fact about Maya with the attribute and the next word."""

    attribute: str = "locker"
    words: list[Cardinality | None] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        word = self.words.pop(0) if self.words else None
        return Answer(
            tuple(
                Fact(
                    line,
                    row.source,
                    subject="Maya",
                    attribute=attribute_name(self.attribute),
                    cardinality=word,
                )
                for row in request.messages
                for line in row.message.content.splitlines()
            )
        )


async def current(engine: Engine, model: RulesModel, *texts: str) -> list[str]:
    """The current memories after these messages, in mode append."""
    engine.with_model(model)
    for text in texts:
        await engine.add(text, options=AddOptions(mode=Mode.APPEND))
        await engine.drain()
    page, _ = await engine.ledger.memories.page(
        engine.project.id, parse({"user_id": "maya"}), expired=False, limit=20, offset=0
    )
    return sorted(memory.text for memory in page)


CHANGES = [
    ("locker", "Maya has locker 12.", "Maya has locker 40."),
    ("Spind", "Maya hat den Spind 12.", "Maya hat den Spind 40."),
    ("taquilla", "Maya tiene la taquilla 12.", "Maya tiene la taquilla 40."),
    ("储物柜", "Maya用12号储物柜。", "Maya用40号储物柜。"),
]


@pytest.mark.parametrize(("attribute", "old", "new"), CHANGES)
async def test_the_extractions_word_makes_the_newest_value_the_current_one(
    engine: Engine, attribute: str, old: str, new: str
) -> None:
    model = Worded(attribute=attribute, words=[ONE, ONE])
    assert await current(engine, model, old, new) == [new]


@pytest.mark.parametrize(("attribute", "old", "new"), CHANGES)
async def test_without_a_word_both_stay(engine: Engine, attribute: str, old: str, new: str) -> None:
    assert await current(engine, Worded(attribute=attribute), old, new) == sorted([old, new])


@pytest.mark.parametrize(
    ("attribute", "first", "second"),
    [
        ("languages", "Maya speaks German.", "Maya speaks Polish."),
        ("Sprachen", "Maya spricht Deutsch.", "Maya spricht Polnisch."),
        ("allergy", "Maya es alérgica al polen.", "Maya es alérgica a los gatos."),
        ("children", "Maya有个儿子小明。", "Maya有个女儿小红。"),
    ],
)
async def test_an_attribute_of_several_values_keeps_them_against_the_models_word(
    engine: Engine, attribute: str, first: str, second: str
) -> None:
    model = Worded(attribute=attribute, words=[ONE, ONE])
    assert await current(engine, model, first, second) == sorted([first, second])


async def test_a_model_that_leaves_out_the_word_later_gets_that_of_the_scope(
    engine: Engine,
) -> None:
    texts = ["Maya has locker 12.", "Maya has locker 40.", "Maya has locker 7."]
    assert await current(engine, Worded(words=[ONE, None, None]), *texts) == texts[-1:]


async def test_several_values_said_once_stay_several(engine: Engine) -> None:
    texts = ["Maya plays the lute.", "Maya plays the oboe.", "Maya plays the harp."]
    model = Worded(attribute="instrument", words=[ONE, SEVERAL, ONE])
    assert await current(engine, model, *texts) == sorted(texts)


async def test_two_values_in_one_message_replace_none(engine: Engine) -> None:
    both = "Maya has locker 12.\nMaya has locker 40."
    model = Worded(words=[ONE])
    assert await current(engine, model, both) == both.splitlines()


async def test_the_projects_list_goes_first(engine: Engine) -> None:
    own = {"languages": "one", "locker": "several"}
    await engine.ledger.projects.change(engine.project.id, {"custom_attributes": own}, {})
    lockers = ["Maya has locker 12.", "Maya has locker 40."]
    assert await current(engine, Worded(words=[ONE, ONE]), *lockers) == lockers
    spoken = Worded(attribute="speaks", words=[SEVERAL, None])
    texts = ["Maya speaks German to us.", "Maya speaks Polish to us."]
    assert await current(engine, spoken, *texts) == [*lockers, texts[1]]


async def test_the_word_is_stored_with_the_memory_and_its_history(engine: Engine) -> None:
    await current(engine, Worded(words=[ONE]), "Maya has locker 12.")
    async with engine.ledger.engine.connect() as connection:
        row: Any = (await connection.execute(select(memories))).one()
    assert (row.cardinality, row.appended) == ("one", True)
