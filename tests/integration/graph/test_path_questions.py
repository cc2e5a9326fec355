"""Questions of two and three hops: the right path among the relations of a search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from pipeline.stores import Ledger
from tests.eval.paths.known import KnownRelations
from tests.eval.paths.worlds import Edge, World, load
from tests.support.api_service import SEARCH, Service, serving

WORLDS = load()
# Least share of the questions whose path is found.
LEAST = 0.9


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


def steps(relation: Mapping[str, Any]) -> tuple[Edge, ...]:
    """The relations of a path, with the one it leads to."""
    return tuple(
        (row["source"], row["relationship"], row["target"]) for row in (*relation["path"], relation)
    )


async def answered(service: Service, world: World) -> list[bool]:
    """For each question of a world, the presence of its path in the relations of a search."""
    service.engine.with_model(KnownRelations(dict(world.facts)))
    for text, _ in world.facts:
        await service.add(text, user_id=world.name)
    results = []
    for question in world.questions:
        body = {"query": question.text, "filters": {"user_id": world.name}}
        answer = (await service.client.post(SEARCH, json=body)).json()
        results.append(question.path in [steps(row) for row in answer["relations"]])
    return results


async def test_the_path_to_the_answer_is_among_the_relations(service: Service) -> None:
    results = [hit for world in WORLDS for hit in await answered(service, world)]
    assert len(results) >= 40
    assert sum(results) >= LEAST * len(results)


async def test_the_memories_of_a_path_rank_first(service: Service) -> None:
    [world] = [world for world in WORLDS if world.name == "en-0"]
    service.engine.with_model(KnownRelations(dict(world.facts)))
    for text, _ in world.facts:
        await service.add(text, user_id="maya")
    query = "In which city is my sister's employer?"
    body = {"query": query, "filters": {"user_id": "maya"}, "threshold": 0.0}
    answer = (await service.client.post(SEARCH, json=body)).json()
    assert {row["memory"] for row in answer["results"][:3]} == {
        "User's sister is called Ines.",
        "Ines works at Bosch.",
        "The Bosch campus is located in Stuttgart.",
    }
