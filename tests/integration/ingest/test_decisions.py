"""Decisions: what a model may not lose, what was said later, and the suggestions that are left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zlib import crc32

import numpy as np
import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions, Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.messages import Message, Role
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.erasure.store import OwnerKey
from pipeline.ports import ExtractionRequest
from pipeline.vector_index.index import VectorIndex
from tests.support.api_service import Service, serving
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine

THEN, LATER = datetime(2024, 5, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class Careless(RulesModel):
    """Model that takes each message as a fact, and gives all memories the last fact's text."""

    outcome: Outcome = Outcome.UPDATE

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(tuple(Fact(m.message.content, m.source) for m in request.messages))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        text = facts[-1].text if self.outcome is Outcome.UPDATE else None
        rows = [
            Decision(len(facts) - 1, self.outcome, "So it is.", text, neighbour.memory_id)
            for neighbour in sorted(neighbours, key=lambda n: n.text)
        ]
        return Answer(tuple(rows) or (Decision(0, Outcome.ADD, "New.", facts[0].text),))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        service.engine.with_model(Careless())
        yield service


async def add(engine: Engine, text: str, said_at: datetime) -> UUID:
    event_id = await engine.send(engine.scope("maya"), [Message(Role.USER, text)], said_at=said_at)
    await engine.drain()
    return event_id


async def test_a_model_that_overwrites_everything_loses_nothing(service: Service) -> None:
    for text in ("Maya lives in Bern with Tom", "Maya lives in Bern with 2 cats"):
        await service.add(text)
    before = await service.engine.texts()
    event = await service.event(await service.add("Maya lives in Porto"))
    assert await service.engine.texts() == [*before, "Maya lives in Porto"]
    outcomes = [line["event"] for line in event["results"]]
    assert outcomes[0] == "ADD"
    assert set(outcomes[1:]) <= {"NOOP"}
    listed = (await service.client.get("/v1/suggestions/", params={"state": "OPEN"})).json()
    withheld = {line["suggestion_id"] for line in event["results"]}
    rows = [row for row in listed["results"] if row["event_id"] == event["id"]]
    assert {row["id"] for row in rows} == withheld
    for row in rows:
        read = (await service.client.get(f"/v1/suggestions/{row['id']}/")).json()
        assert read == row
        assert (row["kind"], row["state"]) == ("UPDATE", "OPEN")
        assert row["proposed_text"] == row["fact"] == "Maya lives in Porto"
        assert "lose" in row["reason"]


async def test_a_suggestion_is_invalid_once_its_memory_has_changed(service: Service) -> None:
    await service.add("Maya lives in Bern with Tom")
    await service.add("Maya lives in Porto")
    [row] = (await service.client.get("/v1/suggestions/")).json()["results"]
    [target] = row["targets"]
    await service.client.delete(f"/v1/memories/{target['memory_id']}/")
    read = (await service.client.get(f"/v1/suggestions/{row['id']}/")).json()
    assert read["state"] == "INVALID"
    assert (await service.client.get("/v1/suggestions/", params={"state": "OPEN"})).json()[
        "results"
    ] == []


async def test_an_erased_owner_leaves_no_suggestion(service: Service) -> None:
    await service.add("Maya lives in Bern with Tom")
    await service.add("Maya lives in Porto")
    project = service.engine.project
    await service.engine.ledger.erasures.erase(project.id, OwnerKey("user", "maya"))
    assert (await service.client.get("/v1/suggestions/")).json()["count"] == 0


async def test_a_delete_that_the_fact_does_not_state_is_withheld(service: Service) -> None:
    await service.add("Maya likes jazz")
    service.engine.with_model(Careless(outcome=Outcome.DELETE))
    await service.add("Maya likes jazz clubs")
    assert await service.engine.texts() == ["Maya likes jazz", "Maya likes jazz clubs"]
    service.engine.with_model(Careless(outcome=Outcome.DELETE))
    await service.add("Maya no longer likes jazz clubs")
    assert await service.engine.texts() == []


async def test_what_was_said_later_stands_in_any_order_of_arrival(engine: Engine) -> None:
    engine.with_model(Careless())
    await add(engine, "Maya lives in Porto", LATER)
    event_id = await add(engine, "Maya lives in Bern", THEN)
    assert await engine.texts() == ["Maya lives in Porto"]
    [line] = (await engine.event(event_id)).receipt
    assert line.outcome is Outcome.NOOP
    assert "said later" in line.reason


async def batched(engine: Engine, *statements: tuple[str, datetime]) -> list[UUID]:
    """Events that run in one batch."""
    sent = [
        await engine.send(engine.scope("maya"), [Message(Role.USER, text)], said_at=said_at)
        for text, said_at in statements
    ]
    await engine.drain()
    return sent


@pytest.mark.parametrize("stored", [False, True], ids=["new", "stored"])
async def test_what_was_said_later_stands_in_any_order_within_a_batch(
    engine: Engine, stored: bool
) -> None:
    if stored:
        await add(engine, "I live in Rome.", THEN - timedelta(days=9))
    later, earlier = await batched(engine, ("I moved to Porto.", LATER), ("I moved to Bern.", THEN))
    assert await engine.texts() == ["User lives in Porto"]
    edges = {(edge.relation, edge.destination) for edge in await engine.relations("User lives")}
    assert edges == {("lives_in", "Porto")}
    assert [outcome for outcome, _ in await engine.outcomes(later)] == [
        "UPDATE" if stored else "ADD"
    ]
    [(outcome, _)] = await engine.outcomes(earlier)
    assert outcome == "NOOP"
    await engine.undo(earlier)
    assert await engine.texts() == ["User lives in Porto"]


async def test_facts_of_one_time_are_decided_in_the_order_of_arrival(engine: Engine) -> None:
    await batched(engine, ("I moved to Porto.", THEN), ("I moved to Bern.", THEN))
    assert await engine.texts() == ["User lives in Bern"]


async def test_a_request_to_forget_reaches_only_what_was_said_before_it(engine: Engine) -> None:
    await batched(engine, ("I live in Bern.", LATER), ("Forget that I live in Bern.", THEN))
    assert await engine.texts() == ["User lives in Bern"]
    await batched(engine, ("Forget that I play chess.", LATER), ("I play chess.", THEN))
    assert await engine.texts() == ["User lives in Bern"]


OSLO, BERGEN = "I live in Oslo.", "I moved to Bergen."
DAYS = [THEN + timedelta(days=day) for day in range(5)]


@pytest.mark.parametrize("stored", [False, True], ids=["new", "stored"])
async def test_a_statement_that_is_true_again_stands_within_a_batch(
    engine: Engine, stored: bool
) -> None:
    first = [(OSLO, DAYS[0])]
    if stored:
        await add(engine, *first.pop())
    await batched(engine, *first, (BERGEN, DAYS[1]), (OSLO, DAYS[2]))
    assert await engine.texts() == ["User lives in Oslo"]
    await add(engine, BERGEN, DAYS[1])
    assert await engine.texts() == ["User lives in Oslo"]


@pytest.mark.parametrize("infer", [True, False], ids=["inferred", "verbatim"])
async def test_a_repeat_within_a_batch_moves_the_time_of_its_memory(
    service: Service, infer: bool
) -> None:
    engine, options = service.engine, AddOptions(infer=infer)
    engine.with_model(RulesModel())
    sent = []
    for said_at in (DAYS[0], DAYS[4]):
        message = [Message(Role.USER, "User lives in Oslo")]
        sent.append(await engine.send(engine.scope(), message, options, said_at=said_at))
    await engine.drain()
    [row] = await service.listed()
    assert [datetime.fromisoformat(row[name]) for name in ("created_at", "said_at")] == [
        DAYS[0],
        DAYS[4],
    ]
    await add(engine, BERGEN, DAYS[2])
    assert "User lives in Oslo" in await engine.texts()
    await engine.undo(sent[1])
    [row] = [row for row in await service.listed() if row["memory"] == "User lives in Oslo"]
    assert datetime.fromisoformat(row["said_at"]) == DAYS[0]


async def test_a_superseded_statement_is_history_and_can_be_undone(engine: Engine) -> None:
    engine.with_model(Careless())
    await add(engine, "Maya lives in Porto", LATER)
    event_id = await add(engine, "Maya lives in Bern", THEN)
    rows = await engine.history_rows()
    assert [row[0] for row in rows] == ["ADD", "NOOP"]
    await engine.undo(event_id)
    assert await engine.texts() == ["Maya lives in Porto"]


class LowScale(HashEmbedder):
    """Embedder whose cosines are a third of the usual: texts without a common word are at 0.12."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        shared = np.full(512, (0.12 / 512) ** 0.5, np.float32)
        return [shared + 0.88**0.5 * _direction(text) for text in texts]


def _direction(text: str) -> Vector:
    """A random unit vector, the same for the same text."""
    vector = np.random.default_rng(crc32(text.encode())).normal(size=512).astype(np.float32)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("others", [0, 8])
async def test_an_embedder_with_low_cosines_hides_no_memory(engine: Engine, others: int) -> None:
    shown: list[str] = []

    class Deciding(Careless):
        async def decide(
            self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
        ) -> Answer[tuple[Decision, ...]]:
            shown.extend(neighbour.text for neighbour in neighbours)
            return Answer((Decision(0, Outcome.ADD, "New.", facts[0].text),))

    embedder = LowScale()
    index = VectorIndex(engine.vectors, engine.ledger.memory_vectors, embedder, buckets=4)
    engine.services = replace(engine.services, model=Deciding(), embedder=embedder, index=index)
    for text in ("User lives in Berlin", *(f"Zoo{n} eats{n} leaf{n}" for n in range(others))):
        await add(engine, text, THEN)
    shown.clear()
    await add(engine, "User moved to Tokyo", LATER)
    assert "User lives in Berlin" in shown


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("I live in Berlin.", {}),
        ("I live in Berlin.", {"infer": False}),
        ("I moved to Porto.", {}),
        ("I moved to Porto.", {"expiration_date": "2099-01-01"}),
    ],
)
async def test_a_statement_after_the_expiration_of_its_memory_is_found(
    service: Service, text: str, options: dict[str, object]
) -> None:
    service.engine.with_model(RulesModel())
    first = await service.add("I live in Berlin.", **(options | {"expiration_date": "2020-01-01"}))
    assert await service.listed() == []
    [line] = (await service.event(await service.add(text, **options)))["results"]
    [row] = await service.listed()
    assert (line["event"], line["memory"]) == ("UPDATE", row["memory"])
    assert row["expiration_date"] == options.get("expiration_date")
    assert row["memory"] in {hit["memory"] for hit in await service.search(row["memory"])}
    [(_, before)] = await service.engine.outcomes(UUID(first))
    assert row["version"] == 2
    history = (await service.client.get(f"/v1/memories/{row['id']}/history/")).json()
    assert history[0]["new_memory"] == before
