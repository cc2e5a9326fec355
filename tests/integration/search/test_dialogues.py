"""Searches of dialogues: what the words of several turns say together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.domain.filters import parse
from pipeline.search import store
from pipeline.search.where import Where
from pipeline.text import terms
from tests.integration.search.test_large_scope import compare_whole
from tests.integration.search.test_search import ask, say
from tests.support.engine import Engine

START = datetime(2024, 5, 7, 12, tzinfo=UTC)
RACE = (
    ("Tom", "Was the race far from the city?"),
    ("Ida", "In the hills, near the old mill."),
    ("Tom", "And which shoes did you wear?"),
    ("Ida", "The red ones from my sister."),
)


def at(number: int) -> datetime:
    return START + timedelta(seconds=20 * number)


async def talk(engine: Engine, *messages: tuple[str, str], run_id: str = "one") -> None:
    for number, (name, words) in enumerate(messages):
        await say(engine, words, name=name, run_id=run_id, at=at(number))
    await engine.drain()


def where(engine: Engine) -> Where:
    tree = parse({"user_id": "maya"})
    return Where.of(engine.project.id, tree, facts=True, turns=False, expired=False)


@pytest.mark.parametrize("whole", [True, False])
async def test_hits_have_the_words_that_they_found_and_their_shares(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, whole: bool
) -> None:
    await talk(engine, *RACE)
    if not whole:
        compare_whole(monkeypatch, 1)
    passages = store.Passages(engine.ledger.engine)
    hits = await passages.by_words(where(engine), terms.query_terms("red shoes race"), limit=2)
    parts = [
        dict(zip(hits.candidates[key].words, hits.candidates[key].parts, strict=True))
        for key in hits.shares
    ]
    assert sorted(len(part) for part in parts) == [1, 1]
    # Named as they are in the other statement, so turns and memories count a word once.
    assert {word for part in parts for word in part} <= set(terms.query_terms("red shoes race"))
    # Three words, each in one message: each is a third of the question.
    assert [value for part in parts for value in part.values()] == pytest.approx([1 / 3] * 2)


async def test_an_answer_beside_the_words_of_a_question_ranks_first(engine: Engine) -> None:
    await talk(engine, *RACE)
    await talk(engine, ("Ida", "The city is loud."), ("Tom", "Yes, and hot."), run_id="two")
    hits = (await ask(engine, "Which race in the city was near the hills?")).hits
    around = {hit.passage.text: hit.score.beside for hit in hits}
    assert around["In the hills, near the old mill."] > around["The red ones from my sister."]
