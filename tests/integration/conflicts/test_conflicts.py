"""Open conflicts: kept, flagged, asked, resolved and undone; none where something decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.conflicts import ConflictState
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.messages import Message
from pipeline.domain.suggestions import SuggestionKind
from pipeline.domain.usage import Answer
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables import conflict_members, conflicts
from pipeline.ports import ExtractionRequest
from pipeline.text.statements.slots import slot
from tests.integration.curator.test_curator import curate
from tests.support.api_service import Service, serving
from tests.support.disagreements import DECIDED, UNDECIDED, Said
from tests.support.engine import Engine

CONFLICTS = "/v1/conflicts/"


class Overwriting(RulesModel):
    """Model that takes each message as a fact, and gives the memory of its slot the new text."""

    def __init__(self, messages: Sequence[Said]) -> None:
        super().__init__()
        self.known = {message.text: message for message in messages}

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        facts = []
        for sourced in request.messages:
            message = self.known[sourced.message.content]
            facts.append(
                Fact(
                    message.text,
                    sourced.source,
                    attributed_to=sourced.message.role,
                    speaker=sourced.message.name,
                    subject=message.subject,
                    attribute=message.attribute,
                    valid_from=message.valid_from,
                )
            )
        return Answer(tuple(facts))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        decisions = []
        for number, fact in enumerate(facts):
            same = sorted((n for n in neighbours if n.slot == fact.slot), key=lambda n: n.text)
            if same:
                target = same[0].memory_id
                row = Decision(number, Outcome.UPDATE, "It changed.", fact.text, target)
            else:
                row = Decision(number, Outcome.ADD, "It is new.", fact.text)
            decisions.append(row)
        return Answer(tuple(decisions))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def say(engine: Engine, message: Said, *known: Said) -> UUID:
    """Add one message. `known`: further statements that the model knows."""
    engine.with_model(Overwriting([message, *known]))
    event_id = await engine.send(
        engine.scope(),
        [Message(message.role, message.text, message.speaker)],
        said_at=message.said_at,
    )
    await engine.drain()
    return event_id


async def open_conflicts(service: Service) -> list[dict[str, Any]]:
    answer = await service.client.get(CONFLICTS, params={"state": "OPEN"})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def flags(service: Service) -> dict[str, str | None]:
    """The conflict of each listed memory, by its text."""
    return {row["memory"]: row["conflict_id"] for row in await service.listed()}


async def resolve(service: Service, conflict_id: str, **body: object) -> dict[str, Any]:
    answer = await service.client.post(f"{CONFLICTS}{conflict_id}/resolve/", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("name", UNDECIDED)
async def test_what_nothing_decides_is_kept_flagged_asked_resolved_and_undone(
    service: Service, name: str
) -> None:
    engine, messages = service.engine, UNDECIDED[name]
    for message in messages:
        event_id = await say(engine, message)
    # Kept and flagged: in the list, in a search and on the receipt.
    texts = {message.text for message in messages}
    flagged = await flags(service)
    assert set(flagged) == texts
    [conflict] = await open_conflicts(service)
    assert set(flagged.values()) == {conflict["id"]}
    hits = await service.search(messages[0].text, sources=["facts"])
    assert {hit["conflict_id"] for hit in hits if hit["memory"] in texts} == {conflict["id"]}
    event = await service.event(str(event_id))
    assert conflict["id"] in {line.get("conflict_id") for line in event["results"]}
    # Asked: the question has all statements.
    assert conflict["slot"] == slot(messages[0].subject, messages[0].attribute)
    assert all(message.text in conflict["question"] for message in messages)
    # Resolved in each way, and undone.
    first, *others = conflict["memories"]
    for body, left in (
        ({"keep": first["memory_id"]}, {first["memory"]}),
        ({"keep": "both"}, texts),
        ({"text": "It is not known."}, {"It is not known."}),
    ):
        resolved = await resolve(service, conflict["id"], **body)
        assert (resolved["state"], resolved["question"] is None) == (
            "RESOLVED", body.get("keep") != "both"
        )  # fmt: skip
        assert await flags(service) == dict.fromkeys(left)
        # The text that a person wrote is an edit, which no model changes.
        edited = {row["memory"] for row in await service.listed() if row["edited_at"]}
        assert edited == ({body["text"]} if "text" in body else set())
        assert await open_conflicts(service) == []
        event_id = UUID(resolved["resolution_event_id"])
        receipt = await service.event(str(event_id))
        assert receipt["event_type"] == "RESOLUTION"
        assert receipt["payload"]["options"]["source"] == "conflict"
        again = await service.client.post(f"{CONFLICTS}{conflict['id']}/resolve/", json=body)
        assert again.status_code == 409
        undone = await service.client.post(f"/v1/event/{event_id}/undo/")
        assert undone.status_code == 200, undone.text
        assert set((await flags(service)).values()) == {conflict["id"]}
        [conflict] = await open_conflicts(service)
        assert len(conflict["memories"]) == len(others) + 1


@pytest.mark.parametrize("name", DECIDED)
async def test_what_slot_time_or_speaker_decides_is_no_conflict(
    service: Service, name: str
) -> None:
    for message in DECIDED[name]:
        await say(service.engine, message)
    assert await open_conflicts(service) == []
    assert set((await flags(service)).values()) == {None}


def test_there_are_thirty_scenarios() -> None:
    assert len(UNDECIDED) == 30


async def test_two_messages_of_one_event_are_no_conflict(service: Service) -> None:
    messages = [
        Said("User lives in Lyon", subject="user"),
        Said("User lives in Graz", subject="user"),
    ]
    service.engine.with_model(Overwriting(messages))
    await service.engine.send(
        service.engine.scope(),
        [Message(message.role, message.text, message.speaker) for message in messages],
        said_at=messages[0].said_at,
    )
    await service.engine.drain()
    assert await open_conflicts(service) == []


LYON, GRAZ = Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe lives in Graz", "Ben", 1)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (Said("Zoe lives in Graz now", "Zoe", 2), {"Zoe lives in Graz now"}),
        (
            Said("Zoe lives in Lyon indeed", "Ben", 2),
            {"Zoe lives in Lyon", "Zoe lives in Lyon indeed"},
        ),
        (Said("Zoe lives in Oslo", "Zoe", 2), {"Zoe lives in Oslo"}),
    ],
)
async def test_a_later_statement_of_the_subject_or_the_same_speaker_resolves_it(
    service: Service, later: Said, left: set[str]
) -> None:
    for message in (LYON, GRAZ):
        await say(service.engine, message)
    before = await flags(service)
    event_id = await say(service.engine, later)
    assert await open_conflicts(service) == []
    after = await flags(service)
    assert set(after) <= left
    assert set(after.values()) == {None}
    [row] = (await service.client.get(CONFLICTS, params={"state": "RESOLVED"})).json()["results"]
    assert (row["resolution"], row["resolution_event_id"]) == (None, None)
    undone = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert undone.status_code == 200, undone.text
    assert await flags(service) == before
    assert len(await open_conflicts(service)) == 1


async def test_a_change_by_a_person_resolves_it_and_a_third_voice_does_not(
    service: Service,
) -> None:
    for message in (LYON, GRAZ):
        await say(service.engine, message)
    await say(service.engine, Said("Zoe's home is in Lyon", "Carl", 3))
    [conflict] = await open_conflicts(service)
    for row in await service.listed():
        if row["memory"] == GRAZ.text:
            await service.client.delete(f"/v1/memories/{row['id']}/")
    assert await open_conflicts(service) == []
    shown = (await service.client.get(f"{CONFLICTS}{conflict['id']}/")).json()
    assert shown["state"] == "RESOLVED"


async def test_a_statement_that_expires_ends_the_conflict(service: Service) -> None:
    for message in (LYON, GRAZ):
        await say(service.engine, message)
    [conflict] = await open_conflicts(service)
    [graz] = [row for row in await service.listed() if row["memory"] == GRAZ.text]

    async def expire(day: str | None) -> None:
        body = {"expiration_date": day}
        answer = await service.client.put(f"/v1/memories/{graz['id']}/", json=body)
        assert answer.status_code == 200, answer.text

    await expire("2020-01-01")
    assert await flags(service) == {LYON.text: None}
    assert await open_conflicts(service) == []
    url = f"{CONFLICTS}{conflict['id']}/"
    shown = (await service.client.get(url)).json()
    assert (shown["state"], shown["question"]) == ("RESOLVED", None)
    refused = await service.client.post(f"{url}resolve/", json={"keep": "both"})
    assert refused.status_code == 409
    assert (await service.client.get(f"/v1/memories/{graz['id']}/")).json()["conflict_id"] is None
    await expire(None)
    assert set((await flags(service)).values()) == {conflict["id"]}
    assert len(await open_conflicts(service)) == 1


async def test_a_wrong_resolution_is_refused_and_changes_nothing(service: Service) -> None:
    for message in (LYON, GRAZ):
        await say(service.engine, message)
    [conflict] = await open_conflicts(service)
    before = await flags(service)
    url = f"{CONFLICTS}{conflict['id']}/resolve/"
    for body in ({}, {"keep": conflict["id"]}, {"text": " "}, {"keep": "both", "text": "Both."}):
        assert (await service.client.post(url, json=body)).status_code == 400
    assert await flags(service) == before
    assert len(await open_conflicts(service)) == 1


async def test_an_erased_owner_leaves_no_conflict(engine: Engine) -> None:
    for message in (LYON, GRAZ):
        await say(engine, message)
    page = await engine.ledger.conflicts.page(
        engine.project.id, state=ConflictState.OPEN, limit=10, offset=0
    )
    assert (page.count, len(page.rows)) == (1, 1)
    await engine.ledger.erasures.erase(engine.project.id, OwnerKey("user", "maya"))
    async with engine.ledger.engine.connect() as connection:
        for table in (conflicts, conflict_members):
            assert (await connection.execute(select(table))).all() == []


@dataclass
class Resolving(RulesModel):
    """Model that resolves every conflict it is shown, and everything else as well."""

    holds: str = ""
    shown: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        self.shown.append(len(request.conflicts))
        positions = tuple(range(len(request.memories)))
        return Answer((Proposal(SuggestionKind.RESOLVE, positions, self.holds, "It holds."),))


async def test_the_curator_suggests_how_to_resolve_a_conflict(service: Service) -> None:
    engine = service.engine
    for message in (LYON, GRAZ):
        await say(engine, message)
    model = Resolving(holds=GRAZ.text)
    await curate(engine, model)
    assert model.shown == [1]
    [row] = (await service.client.get("/v1/suggestions/")).json()["results"]
    assert (row["kind"], row["proposed_text"]) == ("RESOLVE", GRAZ.text)
    accepted = await service.client.post(f"/v1/suggestions/{row['id']}/accept/")
    assert accepted.status_code == 200, accepted.text
    assert await flags(service) == {GRAZ.text: None}
    assert await open_conflicts(service) == []
    event_id = accepted.json()["decision_event_id"]
    assert (await service.client.post(f"/v1/event/{event_id}/undo/")).status_code == 200
    assert len(await open_conflicts(service)) == 1


async def test_a_resolution_of_no_conflict_or_with_a_new_value_is_dropped(
    service: Service,
) -> None:
    engine = service.engine
    await say(engine, LYON)
    await say(engine, Said("Uli lives in Graz", "Ben", 1, "Uli"))
    assert (await curate(engine, Resolving(holds=LYON.text))).dropped == 1
    await say(engine, GRAZ)
    assert (await curate(engine, Resolving(holds="Zoe lives in Oslo"))).dropped == 1
    assert (await service.client.get("/v1/suggestions/")).json()["count"] == 0


async def test_an_export_names_the_open_conflicts_that_it_read(service: Service) -> None:
    messages = next(iter(UNDECIDED.values()))
    for message in messages:
        await say(service.engine, message)
    [conflict] = await open_conflicts(service)
    shape = {"properties": {"home": {"type": "string"}}}
    body = {"filters": {"user_id": "maya"}, "schema": shape}

    async def note() -> str:
        export_id = (await service.client.post("/v1/exports/", json=body)).json()["id"]
        await service.engine.drain()
        return str((await service.event(export_id))["note"])

    assert (await note()).endswith(f"memories. Open conflicts: {conflict['id']}.")
    await resolve(service, conflict["id"], keep=conflict["memories"][0]["memory_id"])
    assert (await note()).endswith(" memories.")


async def test_a_replay_that_is_switched_on_brings_its_conflicts(service: Service) -> None:
    engine = service.engine
    messages = next(iter(UNDECIDED.values()))
    for message in messages:
        event_id = await say(engine, message)
    [before] = await open_conflicts(service)
    engine.with_model(Overwriting(messages))
    begun = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    assert begun.status_code == 200, begun.text
    await engine.drain()
    replay = f"/v1/replays/{begun.json()['id']}/"
    # The copy's conflict is the replay's own until it is switched on.
    assert [row["id"] for row in await open_conflicts(service)] == [before["id"]]
    switched = await service.client.post(f"{replay}switch/", json={})
    assert switched.status_code == 200, switched.text
    [conflict] = await open_conflicts(service)
    assert conflict["id"] == before["id"]
    flagged = await flags(service)
    assert flagged == dict.fromkeys((message.text for message in messages), conflict["id"])
    listed = {row["id"] for row in await service.listed()}
    assert {row["memory_id"] for row in conflict["memories"]} == listed
    assert conflict["question"] == before["question"]
    event = await service.event(str(event_id))
    assert conflict["id"] in {line.get("conflict_id") for line in event["results"]}
    resolved = await resolve(service, conflict["id"], keep=conflict["memories"][0]["memory_id"])
    assert resolved["state"] == "RESOLVED"
    assert len(await service.listed()) == 1


async def test_a_replay_brings_a_conflict_that_the_scope_has_not(service: Service) -> None:
    engine = service.engine
    messages = next(iter(UNDECIDED.values()))
    for message in messages:
        await say(engine, message)
    # As if an earlier release had stored the statements: it knew no conflicts.
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(delete(conflicts))
    assert await open_conflicts(service) == []
    engine.with_model(Overwriting(messages))
    begun = await service.client.post("/v1/replays/", json={"user_id": "maya"})
    await engine.drain()
    assert await open_conflicts(service) == []
    replay = f"/v1/replays/{begun.json()['id']}/"
    switched = await service.client.post(f"{replay}switch/", json={})
    assert switched.status_code == 200, switched.text
    [conflict] = await open_conflicts(service)
    assert set((await flags(service)).values()) == {conflict["id"]}
    resolved = await resolve(service, conflict["id"], keep=conflict["memories"][0]["memory_id"])
    assert resolved["state"] == "RESOLVED"
