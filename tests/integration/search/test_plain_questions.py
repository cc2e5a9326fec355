"""Plain questions find the facts that answer them, in all versions, with the built-in embedder."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.search.requests import OlderSearchRequest, SearchRequest
from pipeline.adapters.embedder_minilm import MiniLM
from pipeline.domain.events import AddOptions
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.search.query import Query
from pipeline.search.ranking.calibration import scale
from pipeline.search.service import SearchResult, search
from pipeline.vector_index.index import VectorIndex
from tests.support.engine import Engine
from tests.support.plain_questions import FACTS

MAYA = {"user_id": "maya"}
V3 = SearchRequest(query="x").threshold
V2 = OlderSearchRequest(query="x").threshold
# One model for all tests: loading it takes most of a second.
MODEL = MiniLM()


async def remember(engine: Engine, *facts: str) -> None:
    """Store these facts, dated one day apart."""
    index = VectorIndex(engine.vectors, engine.ledger.memory_vectors, MODEL, buckets=4)
    engine.services = replace(engine.services, embedder=MODEL, index=index)
    for day, fact in enumerate(facts):
        await engine.send(
            engine.scope(),
            [Message(Role.USER, fact)],
            AddOptions(infer=False),
            said_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day),
        )
    await engine.drain()


async def ask(engine: Engine, question: str, threshold: float) -> SearchResult:
    return await search(
        engine.project.id,
        Query(question, parse(MAYA), top_k=10, threshold=threshold, scale=scale(MODEL.name)),
        ledger=engine.ledger,
        embedder=MODEL,
        index=engine.services.index,
    )


async def score(engine: Engine, question: str, fact: str, threshold: float) -> float | None:
    hits = (await ask(engine, question, threshold)).hits
    return next((hit.score.total for hit in hits if hit.passage.text == fact), None)


async def test_forty_plain_questions_find_their_facts_in_every_version(engine: Engine) -> None:
    await remember(engine, *(fact for fact, _ in FACTS))
    for threshold, least in ((V3, len(FACTS)), (V2, len(FACTS) - 1)):
        scores = {
            question: await score(engine, question, fact, threshold) for fact, question in FACTS
        }
        lost = [question for question, value in scores.items() if value is None]
        assert len(FACTS) - len(lost) >= least, (threshold, lost)
        # Clients drop results below 0.1 themselves.
        faint = [
            question for question, value in scores.items() if value is not None and value < 0.1
        ]
        assert not faint


async def test_a_question_that_is_the_memory_scores_near_one(engine: Engine) -> None:
    await remember(engine, *(fact for fact, _ in FACTS))
    for fact, _ in FACTS:
        [first, *_] = (await ask(engine, fact, V3)).hits
        assert first.passage.text == fact
        assert first.score.total >= 0.9


@pytest.mark.parametrize(
    ("fact", "question", "threshold"),
    [
        ("User loves surfing in Ericeira", "What sport?", 0.35),
        ("User bought a bike", "How does Maya get around?", V3),
        ("User sold their Saab", "How does Maya get around?", V3),
        ("User lives in Porto", "Where do I live?", V2),
        ("User loves hiking", "What are my hobbies?", V2),
        ("User loves ramen", "food", V2),
    ],
)
async def test_a_fact_passes_the_thresholds_that_clients_send(
    engine: Engine, fact: str, question: str, threshold: float
) -> None:
    await remember(engine, fact, "User is allergic to peanuts")
    value = await score(engine, question, fact, threshold)
    assert value is not None
    assert value >= 0.1
