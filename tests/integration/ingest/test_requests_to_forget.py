"""A request to forget over HTTP: carried out or suggested, and never a memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.support.api_service import Service, assert_vectors_fit, serving
from tests.support.engine import Engine

REQUESTS = [
    ("User loves hiking.", "User asks to forget that they love hiking."),
    ("Nutzer wandert gern in den Alpen.", "Bitte vergiss, dass ich gern in den Alpen wandere."),
    ("A Lucía le gusta el senderismo.", "Lucía pide olvidar que le gusta el senderismo."),
    ("Léa habite à Lyon.", "Léa demande d'oublier qu'elle habite à Lyon."),
    ("用户喜欢徒步。", "用户要求忘记他喜欢徒步。"),
]


@dataclass
class Forgetting(RulesModel):
    """Model that extracts each message as it stands, and deletes `target` for a second fact.

    A request has an attribute of its own, as hosted models give it.
    """

    target: str = ""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        texts = [(message.message.content, message.source) for message in request.messages]
        return Answer(tuple(self._fact(Fact(text, source)) for text, source in texts))

    def _fact(self, fact: Fact) -> Fact:
        own = "likes" if fact.text == self.target else "request"
        return replace(fact, subject="user", attribute=own)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        shown = next((n.memory_id for n in neighbours if n.text == self.target), None)
        if shown is None:
            return Answer((Decision(0, Outcome.ADD, "New.", facts[0].text),))
        return Answer((Decision(0, Outcome.DELETE, "Asked to forget.", None, shown),))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def played(service: Service, *texts: str, target: str) -> tuple[set[str], dict[str, Any]]:
    """The texts that stand after the adds, and the event of the last one."""
    user = {"user_id": f"{texts} {target}"}
    service.engine.with_model(Forgetting(target=target))
    for text in texts:
        event_id = await service.add(text, **user)
    listed = await service.listed(**user)
    return {row["memory"] for row in listed}, await service.event(event_id)


@pytest.mark.parametrize(("memory", "request_text"), REQUESTS)
async def test_a_request_deletes_its_memory(
    service: Service, memory: str, request_text: str
) -> None:
    texts, event = await played(service, memory, request_text, target=memory)
    assert texts == set()
    assert [line["event"] for line in event["results"]] == ["DELETE"]


async def test_a_request_that_names_another_memory_is_suggested(service: Service) -> None:
    memory = "User loves the books about hiking in the library."
    texts, event = await played(service, memory, REQUESTS[0][1], target=memory)
    [line] = event["results"]
    assert texts == {memory}
    assert line["event"] == "NOOP"
    assert line["suggestion_id"]


async def test_a_request_without_a_memory_stores_nothing(service: Service) -> None:
    texts, event = await played(service, REQUESTS[0][1], target="")
    [line] = event["results"]
    assert texts == set()
    assert (line["event"], line["id"]) == ("NOOP", None)
    assert "not stored" in line["reason"]


@pytest.mark.parametrize("mode", ["consolidate", "append"])
@pytest.mark.parametrize(("memory", "request_text"), REQUESTS)
async def test_a_request_deletes_a_fact_of_its_own_turn(
    service: Service, memory: str, request_text: str, mode: str
) -> None:
    service.engine.with_model(Forgetting())
    event_id = await service.add(memory, request_text, "User has a boat.", mode=mode)
    event = await service.event(event_id)
    assert [row["memory"] for row in await service.listed()] == ["User has a boat."]
    added, deleted, _ = event["results"]
    assert (added["event"], deleted["event"]) == ("ADD", "DELETE")
    assert added["id"] == deleted["id"]
    assert "forget" in deleted["reason"]
    history = (await service.client.get(f"/v1/memories/{added['id']}/history/")).json()
    assert [line["event"] for line in history] == ["ADD", "DELETE"]
    await assert_vectors_fit(service)
    results = await service.search(memory)
    assert memory not in [row["memory"] for row in results]


async def test_what_a_turn_has_forgotten_is_not_in_the_graph(service: Service) -> None:
    service.engine.with_model(RulesModel())
    event_id = await service.add(
        "I live in Oslo. I work at Bosch. Please forget that I live in Oslo."
    )
    lines = (await service.event(event_id))["graph"]
    assert [(line["event"], line["target"]) for line in lines] == [("ADD", "Bosch")]


# A message, a request, and its outcome with the built-in rules.
SAID_TO_RULES = [
    ("I like jazz.", "Forget jazz.", "DELETE"),
    ("I like jazz.", "Can you forget what I said about jazz?", "DELETE"),
    ("I like jazz.", "Forget that I like jazz.", "DELETE"),
    ("I like live jazz.", "Forget jazz.", "suggested"),
    ("My address is 5 Main Street.", "Forget my address.", "suggested"),
    ("My sister is Anna.", "Delete everything you know about my sister.", "suggested"),
]


@pytest.mark.parametrize(("text", "request_text", "outcome"), SAID_TO_RULES)
async def test_the_rules_carry_out_a_request_or_it_is_suggested(
    service: Service, text: str, request_text: str, outcome: str
) -> None:
    service.engine.with_model(RulesModel())
    await service.add(text)
    [line] = (await service.event(await service.add(request_text)))["results"]
    left = [row["memory"] for row in await service.listed()]
    assert (line["event"] == "DELETE", bool(line.get("suggestion_id"))) == (
        outcome == "DELETE",
        outcome == "suggested",
    )
    assert bool(left) == (outcome == "suggested")
