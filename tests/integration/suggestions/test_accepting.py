"""Decisions of people on suggestions: events with receipts, undo, and what has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert, select, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.suggestions import Suggestion, SuggestionKind
from pipeline.ledger.tables import entities, memories, relations, suggestions
from tests.integration.ingest.test_decisions import Careless
from tests.support.api_service import LIST, MAYA, Service, error_of, serving
from tests.support.engine import Engine

SUGGESTIONS = "/v1/suggestions/"


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


async def withheld(service: Service) -> dict[str, Any]:
    """The suggestion of an add whose UPDATE would have lost Tom."""
    service.engine.with_model(Careless())
    await service.add("Maya lives in Bern with Tom")
    await service.add("Maya lives in Porto")
    return await only_one(service)


async def only_one(service: Service) -> dict[str, Any]:
    [row] = (await service.client.get(SUGGESTIONS)).json()["results"]
    return dict(row)


async def suggest(
    service: Service,
    kind: SuggestionKind,
    ids: Sequence[str],
    text: str | None = None,
    *,
    user_id: str = "maya",
) -> str:
    """Store an open suggestion about these memories, the one that stays first."""
    ledger, scope = service.engine.ledger, service.engine.scope(user_id)
    rows = await ledger.memories.active(service.engine.project.id, [UUID(i) for i in ids])
    versions = {row.id: row.version for row in rows}
    targets = tuple((UUID(i), versions[UUID(i)]) for i in ids)
    made = Suggestion(scope.lane_id, kind, None, "", targets, text, "So it seems.")
    values = {
        "id": made.id,
        "project_id": service.engine.project.id,
        "lane_id": scope.lane_id,
        "kind": kind,
        "origin": "curator",
        "targets": [{"memory_id": str(i), "version": v} for i, v in targets],
        "proposed_text": text,
        "reason": made.reason,
        "content_hash": made.content_hash,
    }
    async with ledger.engine.begin() as connection:
        await connection.execute(insert(suggestions).values(**values))
    return str(made.id)


async def decide(service: Service, suggestion_id: str, action: str, **body: object) -> Any:
    return await service.client.post(f"{SUGGESTIONS}{suggestion_id}/{action}/", json=body or None)


async def texts(service: Service) -> list[str]:
    return sorted(row["memory"] for row in await service.listed())


async def test_a_suggestion_shows_its_diff_its_sources_and_its_losses(service: Service) -> None:
    row = await withheld(service)
    [target] = row["targets"]
    assert row["changes"] == [
        {
            "memory_id": target["memory_id"],
            "before": "Maya lives in Bern with Tom",
            "after": "Maya lives in Porto",
            "merged_into": None,
            "lost": ["Bern", "Tom"],
        }
    ]
    [source] = row["sources"]
    assert source["quote"] == "Maya lives in Bern with Tom"
    assert source["said_at"]


async def flags(service: Service) -> dict[str, str | None]:
    """The suggestion that lists and searches name for each memory, by its text."""
    listed = {row["memory"]: row["suggestion_id"] for row in await service.listed()}
    hits = await service.search("Where does Maya live?", sources=["facts"])
    assert {hit["memory"]: hit["suggestion_id"] for hit in hits} == listed
    return listed


async def test_both_statements_of_a_withheld_change_are_flagged(service: Service) -> None:
    row = await withheld(service)
    both = {"Maya lives in Bern with Tom", "Maya lives in Porto"}
    assert await flags(service) == dict.fromkeys(both, row["id"])
    assert (await decide(service, row["id"], "reject")).status_code == 200
    assert await flags(service) == dict.fromkeys(both)


async def test_an_edit_of_the_memory_ends_the_flag_of_both_statements(service: Service) -> None:
    row = await withheld(service)
    [target] = row["targets"]
    text = {"text": "Maya lived in Bern with Tom"}
    edited = await service.client.put(f"/v1/memories/{target['memory_id']}/", json=text)
    assert edited.status_code == 200, edited.text
    assert set((await flags(service)).values()) == {None}


async def test_an_undo_of_the_add_ends_its_suggestion_until_it_is_said_again(
    service: Service,
) -> None:
    row = await withheld(service)
    undone = await service.client.post(f"/v1/event/{row['event_id']}/undo/", json={})
    assert undone.status_code == 200, undone.text
    assert await flags(service) == {"Maya lives in Bern with Tom": None}
    assert (await only_one(service))["state"] == "INVALID"
    assert (await decide(service, row["id"], "accept")).status_code == 409
    assert await texts(service) == ["Maya lives in Bern with Tom"]
    again = await service.add("Maya lives in Porto")
    reopened = await only_one(service)
    assert (reopened["state"], reopened["event_id"]) == ("OPEN", again)
    assert set((await flags(service)).values()) == {row["id"]}


async def test_an_accepted_update_is_an_event_with_a_receipt(service: Service) -> None:
    row = await withheld(service)
    [target] = row["targets"]
    answer = await decide(service, row["id"], "accept")
    assert answer.status_code == 200, answer.text
    accepted = answer.json()
    assert (accepted["state"], accepted["decided_by"] is not None) == ("ACCEPTED", True)
    # The memory that was added in place of the UPDATE is merged into the updated one.
    assert await texts(service) == ["Maya lives in Porto"]
    [memory] = await service.listed()
    assert (memory["id"], memory["edited_at"]) == (target["memory_id"], None)
    event = await service.event(accepted["decision_event_id"])
    assert (event["event_type"], event["status"]) == ("SUGGESTION", "SUCCEEDED")
    assert event["payload"]["options"]["source"] == "suggestion"
    assert [line["event"] for line in event["results"]] == ["UPDATE", "DELETE"]
    assert {line["suggestion_id"] for line in event["results"]} == {row["id"]}
    assert memory["id"] in event["results"][1]["reason"]
    history = (await service.client.get(f"/v1/memories/{memory['id']}/history/")).json()
    assert history[-1]["event_id"] == event["id"]
    assert history[-1]["old_memory"] == "Maya lives in Bern with Tom"
    [hit] = await service.search("Where does Maya live?", sources=["facts"])
    assert hit["memory"] == "Maya lives in Porto"


async def test_an_undo_of_an_edited_update_ends_its_protection_too(service: Service) -> None:
    for text in ("I like tea.", "I like jam."):
        await service.add(text, infer=False)
    ids = {row["memory"]: row["id"] for row in await service.listed()}
    tea, jam = ids["I like tea."], ids["I like jam."]
    ledger, project_id = service.engine.ledger, service.engine.project.id
    async with ledger.engine.begin() as connection:
        of_jam = update(memories).where(memories.c.id == UUID(jam))
        await connection.execute(of_jam.values(attributed_to="assistant"))
    row = await suggest(service, SuggestionKind.UPDATE, [tea, jam], "I like jam.")
    accepted = await decide(service, row, "accept", text="I like jam and tea.")
    changed = await ledger.memories.get(project_id, UUID(tea))
    assert (changed.attributed_to, changed.edited_at is None) == ("assistant", False)
    await service.client.post(f"/v1/event/{accepted.json()['decision_event_id']}/undo/")
    after = await ledger.memories.get(project_id, UUID(tea))
    assert (after.text, after.attributed_to, after.edited_at) == ("I like tea.", "user", None)


async def test_an_accepted_update_can_be_undone(service: Service) -> None:
    row = await withheld(service)
    before = await texts(service)
    event_id = (await decide(service, row["id"], "accept")).json()["decision_event_id"]
    undone = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == before
    again = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert again.status_code == 409
    # The decision is remembered: the same add proposes nothing new.
    service.engine.with_model(Careless())
    assert (await only_one(service))["state"] == "ACCEPTED"


async def test_a_person_can_edit_the_text_of_a_suggestion(service: Service) -> None:
    row = await withheld(service)
    text = "Maya lives in Porto, without Tom"
    assert (await decide(service, row["id"], "accept", text=text)).status_code == 200
    assert await texts(service) == [text]
    [memory] = await service.listed()
    assert memory["edited_at"] is not None
    # From then on a change by a model is a suggestion again.
    await service.add("Maya lives in Lyon")
    assert text in await texts(service)
    blank = await decide(service, row["id"], "accept", text="  ")
    assert blank.status_code == 400


async def test_acceptance_after_a_change_is_refused_and_names_the_memory(service: Service) -> None:
    row = await withheld(service)
    [target] = row["targets"]
    await service.client.put(
        f"/v1/memories/{target['memory_id']}/", json={"text": "Maya lives in Bern with Ana"}
    )
    before = await texts(service)
    stored = await service.engine.history_rows()
    refused = await decide(service, row["id"], "accept")
    assert refused.status_code == 409
    assert target["memory_id"] in error_of(refused)
    assert await texts(service) == before
    assert await service.engine.history_rows() == stored
    assert (await only_one(service))["state"] == "INVALID"
    [listed] = (await service.client.get(SUGGESTIONS, params={"state": "INVALID"})).json()[
        "results"
    ]
    assert listed["id"] == row["id"]


@pytest.mark.parametrize(
    ("action", "state", "other"),
    [("reject", "REJECTED", "dismiss"), ("dismiss", "DISMISSED", "reject")],
)
async def test_a_declined_suggestion_changes_nothing_and_stays_declined(
    service: Service, action: str, state: str, other: str
) -> None:
    row = await withheld(service)
    before = await texts(service)
    for _ in range(2):
        declined = await decide(service, row["id"], action)
        assert (declined.status_code, declined.json()["state"]) == (200, state)
    for late in ("accept", other):
        refused = await decide(service, row["id"], late)
        assert refused.status_code == 409
        assert state in error_of(refused)
    assert await texts(service) == before


async def test_two_acceptances_at_once_are_one_event(service: Service) -> None:
    row = await withheld(service)
    answers = await asyncio.gather(*(decide(service, row["id"], "accept") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert await texts(service) == ["Maya lives in Porto"]


async def test_a_combination_keeps_the_oldest_memory_and_points_to_it(service: Service) -> None:
    for text in ("I like tea.", "I own a dog.", "I like green tea."):
        await service.add(text)
    rows = await service.listed()
    by_text = {row["memory"]: row for row in rows}
    first, second = (by_text[text] for text in sorted(by_text) if "tea" in text)
    oldest, newest = sorted((first, second), key=lambda row: str(row["created_at"]))
    before = await texts(service)
    ids = [oldest["id"], newest["id"]]
    suggestion_id = await suggest(service, SuggestionKind.COMBINE, ids, "User likes green tea.")
    accepted = (await decide(service, suggestion_id, "accept")).json()
    assert "User likes green tea." in await texts(service)
    [anchor] = [row for row in await service.listed() if row["id"] == oldest["id"]]
    assert anchor["created_at"] == oldest["created_at"]
    assert anchor["memory"] == "User likes green tea."
    gone = select(memories.c.superseded_by, memories.c.state).where(
        memories.c.id == UUID(newest["id"])
    )
    async with service.engine.ledger.engine.connect() as connection:
        row = (await connection.execute(gone)).one()
    assert (str(row.superseded_by), row.state) == (oldest["id"], "RETIRED")
    event_id = accepted["decision_event_id"]
    assert (await service.client.post(f"/v1/event/{event_id}/undo/")).status_code == 200
    assert await texts(service) == before


async def test_merged_memories_are_read_on_request(service: Service) -> None:
    for text in ("I like tea.", "I own a dog.", "I like green tea."):
        await service.add(text)
    tea = sorted(
        (row for row in await service.listed() if "tea" in row["memory"]),
        key=lambda row: str(row["created_at"]),
    )
    between = await service.engine.ledger.now()
    suggestion_id = await suggest(
        service, SuggestionKind.COMBINE, [row["id"] for row in tea], "User likes green tea."
    )
    await decide(service, suggestion_id, "accept")
    await service.engine.services.index.catch_up()

    async def states(**options: object) -> dict[str, tuple[str, str | None]]:
        body = {"filters": MAYA} | options
        rows = (await service.client.post(LIST, json=body)).json()["results"]
        return {row["id"]: (row["lifecycle_state"], row["replaced_by"]) for row in rows}

    anchor, merged = (row["id"] for row in tea)
    current = await states()
    assert merged not in current
    assert await states(include_merged=True) == current | {merged: ("merged", anchor)}
    assert await states(include_merged=True, latest_only=True) == current
    assert merged not in await states(include_superseded=True)
    assert merged in await states(as_of=between.isoformat())
    hits = await service.search("tea", sources=["facts"], include_merged=True)
    assert merged in {row["id"] for row in hits}
    assert merged not in {row["id"] for row in await service.search("tea", sources=["facts"])}
    path = f"/v1/memories/{merged}/"
    assert (await service.client.get(path)).status_code == 404
    memory = await service.client.get(path, params={"include_merged": "true"})
    assert memory.json()["replaced_by"] == anchor


async def test_the_graph_follows_an_accepted_delete_and_its_undo(service: Service) -> None:
    service.engine.with_model(RulesModel())
    await service.add("I live in Berlin.")
    assert await edges(service) == 1
    [memory] = await service.listed()
    suggestion_id = await suggest(service, SuggestionKind.DELETE, [memory["id"]])
    with_text = await decide(service, suggestion_id, "accept", text="No.")
    assert with_text.status_code == 400
    accepted = (await decide(service, suggestion_id, "accept")).json()
    assert (await texts(service), await edges(service)) == ([], 0)
    event_id = accepted["decision_event_id"]
    assert (await service.client.post(f"/v1/event/{event_id}/undo/")).status_code == 200
    assert (len(await texts(service)), await edges(service)) == (1, 1)


async def test_a_relation_ends_with_its_own_memory_and_not_with_its_event(
    service: Service,
) -> None:
    service.engine.with_model(RulesModel())
    await service.add("I live in Berlin. I like jazz.")
    [berlin] = [row for row in await service.listed() if "Berlin" in row["memory"]]
    suggestion_id = await suggest(service, SuggestionKind.DELETE, [berlin["id"]])
    accepted = (await decide(service, suggestion_id, "accept")).json()
    assert await targets(service) == {"jazz"}
    await service.client.post(f"/v1/event/{accepted['decision_event_id']}/undo/")
    assert await targets(service) == {"jazz", "Berlin"}


async def test_a_merge_keeps_the_relation_of_the_newest_statement(service: Service) -> None:
    service.engine.with_model(RulesModel())
    await service.add("I like tea.", timestamp=1_700_000_000)
    await service.add("I like jazz.", timestamp=1_710_000_000)
    ids = [row["id"] for row in sorted(await service.listed(), key=lambda row: row["created_at"])]
    suggestion_id = await suggest(service, SuggestionKind.UPDATE, ids, "User likes jazz now.")
    assert (await decide(service, suggestion_id, "accept")).status_code == 200
    assert await targets(service) == {"jazz"}


async def test_the_relation_of_a_merged_repeat_ends_with_the_memory_that_stands(
    service: Service,
) -> None:
    service.engine.with_model(RulesModel())
    await service.add("I like tea.")
    await service.add("I like jazz.")
    ids = [row["id"] for row in await service.listed()]
    both = await suggest(service, SuggestionKind.COMBINE, ids, "User likes tea and jazz.")
    assert (await decide(service, both, "accept")).status_code == 200
    assert await targets(service) == {"tea", "jazz"}
    [standing] = await service.listed()
    deleted = await service.client.delete(f"/v1/memories/{standing['id']}/")
    assert deleted.status_code == 200
    assert await targets(service) == set()


async def targets(service: Service) -> set[str]:
    """The names of the ends of all current relations."""
    query = (
        select(entities.c.name)
        .join(relations, relations.c.destination_id == entities.c.id)
        .where(relations.c.expired_at.is_(None))
    )
    async with service.engine.ledger.engine.connect() as connection:
        return set((await connection.execute(query)).scalars())


async def edges(service: Service) -> int:
    query = select(relations.c.id).where(relations.c.expired_at.is_(None))
    async with service.engine.ledger.engine.connect() as connection:
        return len((await connection.execute(query)).all())


async def test_what_cannot_be_stored_is_refused_and_the_suggestion_stays_open(
    service: Service,
) -> None:
    await service.add("I like tea.")
    await service.add("I own a dog.")
    tea, dog = sorted(await service.listed(), key=lambda row: "dog" in row["memory"])
    taken = await suggest(service, SuggestionKind.UPDATE, [tea["id"]], dog["memory"])
    refused = await decide(service, taken, "accept")
    assert refused.status_code == 409
    assert dog["id"] in error_of(refused)
    immutable = update(memories).where(memories.c.id == UUID(tea["id"])).values(immutable=True)
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(immutable)
    fixed = await decide(service, taken, "accept", text="User likes mint tea.")
    assert "immutable" in error_of(fixed)
    assert (await only_one(service))["state"] == "OPEN"
    assert len(await texts(service)) == 2


async def test_many_are_decided_at_once_by_kind_or_by_ids(service: Service) -> None:
    for text in ("I like tea.", "I own a dog.", "I like jazz."):
        await service.add(text)
    ids = [row["id"] for row in await service.listed()]
    deletes = [await suggest(service, SuggestionKind.DELETE, [i]) for i in ids[:2]]
    pair = await suggest(service, SuggestionKind.COMBINE, ids[1:], "Both.")
    url = f"{SUGGESTIONS}decide/"
    done = (await service.client.post(url, json={"action": "accept", "kind": "DELETE"})).json()
    assert done["decided"] == 2
    assert {row["id"] for row in done["results"]} == set(deletes)
    assert all(row["event_id"] and row["error"] is None for row in done["results"])
    assert len(await texts(service)) == 1
    late = (await service.client.post(url, json={"action": "accept", "ids": [pair]})).json()
    assert (late["decided"], ids[1] in late["results"][0]["error"]) == (0, True)
    for wrong in ({"action": "accept"}, {"action": "accept", "ids": [pair], "kind": "DELETE"}):
        assert (await service.client.post(url, json=wrong)).status_code == 400


async def test_acceptances_and_adds_at_once_leave_a_store_that_its_history_explains(
    service: Service,
) -> None:
    row = await withheld(service)
    adds = [
        service.client.post("/v3/memories/add/", json={"messages": f"Maya likes jam {n}"} | MAYA)
        for n in range(4)
    ]
    await asyncio.gather(*adds, decide(service, row["id"], "accept"))
    await service.engine.drain()
    listed = await service.client.post(LIST, json={"filters": MAYA})
    for memory in listed.json()["results"]:
        history = (await service.client.get(f"/v1/memories/{memory['id']}/history/")).json()
        assert history[-1]["new_memory"] == memory["memory"]
