"""Mode append over HTTP: a statement that something is so no longer ends the memory of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.support.api_service import MAYA, SEARCH, Service, serving
from tests.support.engine import Engine

ENDED = [
    ("User lives in Oslo.", "User used to live in Oslo."),
    ("User works at Bosch as an engineer.", "User no longer works at Bosch."),
    ("User owns a red bike.", "User sold the bike."),
    ("User eats meat.", "User stopped eating meat."),
    ("Jonas wohnt in Oslo.", "Jonas wohnte früher in Oslo."),
    ("Jonas isst Fleisch.", "Jonas isst kein Fleisch mehr."),
    ("Lucía trabaja en Bosch.", "Lucía ya no trabaja en Bosch."),
    ("Lucía tiene una bicicleta.", "Lucía vendió la bicicleta."),
    ("Léa habite à Lyon.", "Léa n'habite plus à Lyon."),
    ("用户住在奥斯陆。", "用户以前住在奥斯陆。"),
]
CARELESS = [
    ("User's office is in Oslo.", "User used to live in Oslo."),
    ("User works at Siemens.", "User no longer works at Bosch."),
    ("User owns a bike lock.", "User sold the bike."),
    ("User eats meat.", "User stopped eating meat on Mondays."),
    ("Jonas wohnt in Bern.", "Jonas wohnte früher in Oslo."),
    ("Lucía come pescado.", "Lucía dejó de comer carne."),
    ("用户住在上海。", "用户以前住在奥斯陆。"),
]
ATTRIBUTES = {"live": "residence", "work": "employer", "eat": "diet"}


@dataclass
class Stating(RulesModel):
    """Model that extracts each message as it stands, and is never asked for a decision."""

    slots: bool = False

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(tuple(self._fact(m.message.content, m.source) for m in request.messages))

    def _fact(self, text: str, source: Any) -> Fact:
        fact = Fact(text, source)
        named = next((name for word, name in ATTRIBUTES.items() if word in text), None)
        return replace(fact, subject="user", attribute=named) if self.slots and named else fact

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        raise AssertionError("mode append decides without a model")


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def played(service: Service, *texts: str, model: RulesModel) -> Mapping[str, dict[str, Any]]:
    """The memories that stand after the adds in mode append, by their texts."""
    user = {"user_id": f"{texts} {model}"}
    service.engine.with_model(model)
    for text in texts:
        await service.add(text, mode="append", **user)
    return {row["memory"]: row for row in await service.listed(**user)}


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize(("memory", "fact"), ENDED)
async def test_an_end_leaves_no_outdated_memory(
    service: Service, memory: str, fact: str, slots: bool
) -> None:
    rows = await played(service, memory, fact, model=Stating(slots=slots))
    flagged = memory in rows and rows[memory]["suggestion_id"]
    assert memory not in rows or flagged
    assert fact in rows


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize(("memory", "fact"), CARELESS)
async def test_an_end_leaves_every_other_memory(
    service: Service, memory: str, fact: str, slots: bool
) -> None:
    rows = await played(service, memory, fact, model=Stating(slots=slots))
    assert set(rows) == {memory, fact}


async def test_the_former_statement_is_history(service: Service) -> None:
    rows = await played(service, *ENDED[0], model=Stating(slots=True))
    [row] = rows.values()
    history = (await service.client.get(f"/v1/memories/{row['id']}/history/")).json()
    assert [line["new_memory"] for line in history] == list(ENDED[0])


async def test_a_request_to_forget_needs_no_model(service: Service) -> None:
    rows = await played(
        service,
        "User loves hiking.",
        "User lives in Oslo.",
        "User asks to forget that they love hiking.",
        "User asks to forget their salary.",
        model=Stating(),
    )
    assert set(rows) == {"User lives in Oslo."}


async def test_rules_end_what_they_extracted(service: Service) -> None:
    rows = await played(
        service,
        "I live in Oslo. I work at Bosch. I have a bike. I eat meat.",
        "I used to live in Oslo.",
        "I no longer work at Bosch.",
        "I sold the bike.",
        "I stopped eating meat.",
        model=RulesModel(),
    )
    assert set(rows) == {
        "User used to live in Oslo",
        "User no longer works at Bosch",
        "User sold the bike",
        "User no longer eats meat",
    }


async def related(service: Service) -> set[str]:
    """The current relations of Maya, in words."""
    answer = await service.client.get("/v1/graph/", params={"user_id": "maya"})
    rows = answer.json()["results"]
    return {f"{row['source']} {row['relationship']} {row['target']}" for row in rows}


WITHOUT_GRAPH = [{"mode": "append"}, {"enable_graph": False}]
LIVES, WORKS = "User lives_in Oslo", "User works_at Bosch"


@pytest.mark.parametrize("options", WITHOUT_GRAPH)
@pytest.mark.parametrize(
    ("news", "left"),
    [
        ("Forget that I live in Oslo.", {WORKS}),
        ("I no longer work at Bosch.", {LIVES}),
        ("I like tea.", {LIVES, WORKS}),
    ],
)
async def test_a_relation_ends_with_its_memory_where_the_graph_is_left_out(
    service: Service, options: dict[str, object], news: str, left: set[str]
) -> None:
    await service.add("I live in Oslo. I work at Bosch.")
    before = await related(service)
    event_id = await service.add(news, **options)
    assert await related(service) == left
    body = {"query": "Where do I live and work?", "filters": MAYA}
    relations = (await service.client.post(SEARCH, json=body)).json()["relations"]
    assert {f"User {row['relationship']} {row['target']}" for row in relations} == left
    undone = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert undone.status_code == 200
    assert await related(service) == before == {LIVES, WORKS}


@pytest.mark.parametrize(
    ("news", "text", "left"),
    [
        ("I live in Oslo, Norway.", "User lives in Oslo, Norway", {LIVES}),
        ("I moved to Bergen.", "User lives in Bergen", set()),
    ],
)
async def test_an_update_without_a_graph_leaves_the_relations_that_its_text_still_gives(
    service: Service, news: str, text: str, left: set[str]
) -> None:
    await service.add("I live in Oslo.")
    await service.add(news, enable_graph=False)
    assert [row["memory"] for row in await service.listed()] == [text]
    assert await related(service) == left


class Joining(Stating):
    """Model that adds short facts, puts a long one in the place of all, and deletes with "no"."""

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        text = facts[0].text
        if "with" not in text and " no " not in text:
            return Answer((Decision(0, Outcome.ADD, "New.", text),))
        longest, *others = sorted(neighbours, key=lambda n: len(n.text), reverse=True)
        change = Outcome.DELETE if " no " in text else Outcome.UPDATE
        rows = [Decision(0, change, "So it is.", text, longest.memory_id)]
        return Answer(
            (*rows, *(Decision(0, Outcome.DELETE, "Joined.", None, n.memory_id) for n in others))
        )


@pytest.mark.parametrize("last", ["deleted", "ended", "undone"])
async def test_a_relation_passes_to_the_memory_that_says_it_now(
    service: Service, last: str
) -> None:
    service.engine.with_model(Joining())
    await service.add("User lives in Oslo.")
    [first] = await service.listed()
    await service.add("User lives in Oslo by the river.", enable_graph=False)
    event_id = await service.add("User lives in Oslo by the river with Jo.", enable_graph=False)
    [joined] = await service.listed()
    assert joined["memory"] == "User lives in Oslo by the river with Jo."
    assert await stating(service) == {LIVES: joined["id"]}
    match last:
        case "deleted":
            await service.client.delete(f"/v1/memories/{joined['id']}/")
        case "ended":
            await service.add("User no longer lives in Oslo with Jo.", enable_graph=False)
        case _:
            await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert await stating(service) == ({LIVES: first["id"]} if last == "undone" else {})


async def stating(service: Service) -> dict[str, str]:
    """The memory that states each relation."""
    answer = await service.client.get("/v1/graph/", params=MAYA)
    return {
        f"{row['source']} {row['relationship']} {row['target']}": row["memory_id"]
        for row in answer.json()["results"]
    }
