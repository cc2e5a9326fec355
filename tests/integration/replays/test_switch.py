"""Switches to a replay: what stays, what is compared again, and edits in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, event

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.facts import Fact
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import suggestions
from pipeline.ports import ExtractionRequest
from tests.integration.conflicts.test_conflicts import Overwriting
from tests.integration.graph.test_reads import exported, graph, now
from tests.integration.replays.test_shadow import rows
from tests.integration.suggestions.test_accepting import decide, only_one, withheld
from tests.support.api_service import ADD, LIST, MAYA, Service, error_of
from tests.support.disagreements import UNDECIDED
from tests.support.embedder_hash import HashEmbedder
from tests.support.replaying import Tagged, look, replayed, switch, texts


async def test_a_switch_puts_the_replays_memories_in_place_of_the_scopes(service: Service) -> None:
    event_id = await service.add("I live in Berlin.")
    [old] = await service.listed(**MAYA)
    service.engine.with_model(Tagged(tag="Maya says:"))
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["removed"], answer.json()["adopted"]) == (
        "SWITCHED",
        1,
        1,
    )
    [new] = await service.listed(**MAYA)
    assert (new["memory"], new["event_id"]) == ("Maya says: I live in Berlin.", event_id)
    assert new["timestamp"] == old["timestamp"]
    assert new["created_at"] == (await service.event(event_id))["created_at"]
    hits = await service.search("Maya says: I live where?")
    assert [hit["id"] for hit in hits] == [new["id"]]
    assert hits[0]["score_breakdown"]["semantic"] > 0.5
    history = (await service.client.get(f"/v1/memories/{old['id']}/history/")).json()
    assert history[-1]["event"] == "DELETE"
    assert history[-1]["reason"] == f"Replaced by replay {replay['id']}."
    [line] = (await service.client.get(f"/v1/memories/{new['id']}/history/")).json()
    assert line["event_id"] == event_id
    event = await service.event(event_id)
    assert [line["id"] for line in event["results"]] == [old["id"], new["id"]]
    assert (event["status"], event["graph_status"]) == ("SUCCEEDED", "SUCCEEDED")
    assert (await service.client.get("/v1/stats/")).json()["identity"]
    # No row of the shadow is left, in the ledger or in the index.
    left = await rows(service.engine, of=UUID(replay["id"]))
    assert not any(left.values()), left
    projects = [
        record.payload["project_id"]
        for name in await service.engine.vectors.list_cols()
        for record in await service.engine.vectors.list(name, where={}, limit=100)
    ]
    assert projects == [str(service.engine.project.id)]
    assert (await switch(service, replay["id"])).status_code == 409


async def test_the_entities_that_a_switch_adopts_are_exported(service: Service) -> None:
    await service.add("I work at Acme.")
    service.engine.with_model(RulesModel())
    replay = await replayed(service)
    assert (await switch(service, replay["id"])).status_code == 200
    assert await graph(service) == ["User works_at Acme"]
    before = [row for row in await exported(service) if row["kind"] == "entity"]
    assert {row["name"] for row in before} == {"User", "Acme"}
    [user] = [row["id"] for row in before if row["name"] == "User"]
    into = {"into": next(row["id"] for row in before if row["id"] != user)}
    merged = await service.client.post(f"/v1/graph/entities/{user}/merge/", json=into)
    assert merged.status_code == 200, merged.text
    await service.client.post(f"/v1/graph/entities/{user}/split/")
    assert [row for row in await exported(service) if row["kind"] == "entity"] == before


class Corrected(Tagged):
    """Model that replaces rum with gin."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        answer = await super().extract(request)
        facts = tuple(replace(fact, text=fact.text.replace("rum", "gin")) for fact in answer.value)
        return Answer(facts)


async def by_text(service: Service) -> dict[str, str]:
    return {row["memory"]: row["id"] for row in await service.listed(**MAYA)}


async def test_a_memory_that_a_replay_does_not_change_keeps_its_id(service: Service) -> None:
    event_ids = [await service.add(f"Likes {drink}.") for drink in ("tea", "milk", "rum", "cola")]
    before = await by_text(service)
    service.engine.with_model(Corrected())
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert {key: answer.json()[key] for key in ("kept", "removed", "adopted")} == {
        "kept": 3,
        "removed": 1,
        "adopted": 1,
    }
    after = await by_text(service)
    assert after.keys() == {"Likes tea.", "Likes milk.", "Likes gin.", "Likes cola."}
    unchanged = after.keys() & before.keys()
    assert {text: after[text] for text in unchanged} == {text: before[text] for text in unchanged}
    assert after["Likes gin."] not in before.values()
    tea = after["Likes tea."]
    opinion = {"memory_id": tea, "feedback": "POSITIVE"}
    assert (await service.client.post("/v1/feedback/", json=opinion)).status_code == 200
    history = (await service.client.get(f"/v1/memories/{tea}/history/")).json()
    assert [line["event"] for line in history] == ["ADD"]
    # It is on the receipt once, and a search still finds it.
    assert [line["id"] for line in (await service.event(event_ids[0]))["results"]] == [tea]
    assert tea in [hit["id"] for hit in await service.search("Likes tea.")]
    left = await rows(service.engine, of=UUID(replay["id"]))
    assert not any(left.values()), left
    undone = await service.client.post(f"/v1/event/{event_ids[0]}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == ["Likes cola.", "Likes gin.", "Likes milk."]


async def test_a_memory_of_another_history_gets_the_replays_id(service: Service) -> None:
    """An undo follows the history, so a memory with the same text is not the same memory."""
    await service.add("Likes tea.")
    [old] = await service.listed(**MAYA)
    for text in ("Likes rum.", "Likes tea."):
        await service.client.put(f"/v1/memories/{old['id']}/", json={"text": text})
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["kept"] == 0
    [new] = await service.listed(**MAYA)
    assert (new["memory"], new["id"] == old["id"]) == ("Likes tea.", False)


async def test_a_switched_receipt_names_the_conflict_of_its_line(service: Service) -> None:
    """Also if the replay's receipts were written for other memories than the scope's."""
    disagreement = UNDECIDED["residence"]
    service.engine.with_model(Tagged(tag="Someone says:"))
    event_ids = [
        await service.add(
            messages=[{"role": "user", "name": each.speaker, "content": each.text}],
            timestamp=int(each.said_at.timestamp()),
            metadata={"batch": each.speaker},
        )
        for each in disagreement
    ]
    service.engine.with_model(Overwriting(disagreement))
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 200, answer.text
    [conflict] = (await service.client.get("/v1/conflicts/")).json()["results"]
    assert {row["conflict_id"] for row in await service.listed(**MAYA)} == {conflict["id"]}
    lines = (await service.event(event_ids[1]))["results"]
    assert conflict["id"] in {line.get("conflict_id") for line in lines}


@pytest.mark.parametrize("known", [True, False])
async def test_a_switched_suggestion_names_the_memory_that_stays(
    service: Service, known: bool
) -> None:
    """`known`: the scope has the suggestion, too."""
    original = await withheld(service)
    [target] = original["targets"]
    if not known:
        async with service.engine.ledger.engine.begin() as connection:
            await connection.execute(delete(suggestions))
    replay = await replayed(service, answers="recorded")
    assert (await switch(service, replay["id"])).is_success
    moved = await only_one(service)
    assert (moved["id"] == original["id"]) is known
    assert moved["state"] == "OPEN"
    assert moved["targets"] == [target]
    assert moved["changes"] == original["changes"]
    if known:  # else no receipt names the memory that was stored in place of the change
        accepted = await decide(service, moved["id"], "accept")
        assert accepted.is_success, accepted.text
        assert {row["id"] for row in await service.listed()} >= {target["memory_id"]}


async def test_a_switch_takes_as_many_statements_for_many_memories_as_for_one(
    service: Service,
) -> None:
    counts = []
    for many in (1, 12):
        for n in range(many):
            await service.add(f"Likes drink {many}-{n}.")
        service.engine.with_model(Tagged(tag=f"Anew {many}:"))
        replay = await replayed(service)
        statements: list[str] = []

        def note(
            _c: object, _d: object, statement: str, *_: object, to: list[str] = statements
        ) -> None:
            to.append(statement)

        shadow = await service.engine.ledger.shadows.get(
            service.engine.project.id, UUID(replay["id"])
        )
        texts = await service.engine.ledger.switch.texts(shadow, embedder="another")
        assert len(texts) >= many
        engine = service.engine.ledger.engine.sync_engine
        event.listen(engine, "before_cursor_execute", note)
        done = await service.engine.ledger.switch.switch(
            service.engine.project.id,
            shadow.id,
            force=False,
            vectors=dict(zip(texts, await HashEmbedder().embed(texts), strict=True)),
            embedder="another",
        )
        event.remove(engine, "before_cursor_execute", note)
        assert len(done.here) == len(texts)
        counts.append(len(statements))
        service.engine.with_model(Tagged())
    assert counts[0] == counts[1]


async def test_a_switch_compares_again_where_a_memory_changed_in_between(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.add("Likes tea.")
    [tea] = await service.listed(**MAYA)
    replay = await replayed(service)
    switching = service.engine.ledger.switch
    compared = switching._compared

    async def and_then_an_edit(project_id: ProjectId, shadow_id: UUID) -> Any:
        before = await compared(project_id, shadow_id)
        edit = {"text": "Likes green tea."}
        assert (await service.client.put(f"/v1/memories/{tea['id']}/", json=edit)).is_success
        return before

    monkeypatch.setattr(switching, "_compared", and_then_an_edit)
    answer = await switch(service, replay["id"])
    assert answer.status_code == 409
    assert f"Memory {tea['id']} was edited" in error_of(answer)
    assert await texts(service) == ["Likes green tea."]


async def test_the_scope_goes_on_from_what_was_switched_on(service: Service) -> None:
    """The next add updates the new memory, and an undo reverts it."""
    engine = service.engine
    first = await service.add("I live in Berlin.")
    engine.with_model(RulesModel())
    replay = await replayed(service)
    assert (await switch(service, replay["id"])).status_code == 200
    second = await service.add("I moved to Oslo.")
    assert [line["event"] for line in (await service.event(second))["results"]] == ["UPDATE"]
    [memory] = await service.listed(**MAYA)
    assert "Oslo" in memory["memory"]
    near = await engine.relations("user berlin oslo", **MAYA)
    assert [edge.destination for edge in near if edge.relation == "lives_in"] == ["Oslo"]
    assert (await service.client.post(f"/v1/event/{second}/undo/")).status_code == 200
    [memory] = await service.listed(**MAYA)
    assert "Berlin" in memory["memory"]
    undone = await service.client.post(f"/v1/event/{first}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == []


async def test_events_added_since_are_replayed_before_a_switch(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await replayed(service, custom_instructions="She")
    late = await service.client.post(ADD, json={"messages": "Likes rum."} | MAYA)
    busy = await switch(service, replay["id"])
    assert busy.status_code == 409
    assert "1 events of these ids are under way" in error_of(busy)
    await service.engine.drain()
    assert (await look(service, replay["id"]))["behind"] == 1
    behind = await switch(service, replay["id"])
    assert behind.status_code == 409
    assert "1 events came since" in error_of(behind)
    assert await texts(service) == ["Likes rum.", "Likes tea."]
    await service.engine.drain()
    replay = await look(service, replay["id"])
    assert (replay["status"], replay["behind"], replay["accepted"]) == ("READY", 0, 2)
    assert (await switch(service, replay["id"])).status_code == 200
    assert await texts(service) == ["She Likes rum.", "She Likes tea."]
    assert (await service.event(late.json()["event_id"]))["results"][-1]["memory"].startswith("She")


async def test_edits_of_people_that_would_be_lost_are_reported(service: Service) -> None:
    for text in ("Likes tea.", "Likes rum.", "Likes gin."):
        await service.add(text)
    ids = {row["memory"]: row["id"] for row in await service.listed(**MAYA)}
    await service.client.put(f"/v1/memories/{ids['Likes tea.']}/", json={"text": "Loves tea."})
    await service.client.delete(f"/v1/memories/{ids['Likes rum.']}/")
    await service.client.put(
        f"/v1/memories/{ids['Likes gin.']}/", json={"metadata": {"sure": True}}
    )
    replay = await replayed(service)
    lost = (await look(service, replay["id"], "diff/"))["edits_lost"]
    assert {(edit["memory"], edit["edit"]) for edit in lost} == {
        ("Loves tea.", "UPDATE"),
        ("Likes rum.", "DELETE"),
        ("Likes gin.", "UPDATE"),
    }
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert all(memory_id in error_of(refused) for memory_id in ids.values())
    assert '{"force": true}' in error_of(refused)
    assert await texts(service) == ["Likes gin.", "Loves tea."]
    assert (await switch(service, replay["id"], force=True)).status_code == 200
    assert await texts(service) == ["Likes gin.", "Likes rum.", "Likes tea."]


async def test_an_event_that_fails_only_in_the_replay_is_not_lost_unseen(service: Service) -> None:
    await service.add("Likes tea.")
    event_id = await service.add("Likes poison.")
    service.engine.with_model(Tagged(tag="She"))
    replay = await replayed(service)
    assert replay["failures"] == {"LLM_BAD_OUTPUT": 1}
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert "1 events that SUCCEEDED have FAILED" in error_of(refused)
    assert (await switch(service, replay["id"], force=True)).status_code == 200
    event = await service.event(event_id)
    assert (event["status"], event["code"]) == ("FAILED", "LLM_BAD_OUTPUT")
    assert (await service.client.get("/v1/stats/")).json()["identity"]
    service.engine.with_model(Tagged())
    assert (await service.client.post(f"/v1/event/{event_id}/replay/")).status_code == 200
    await service.engine.drain()
    assert await texts(service) == ["Likes poison.", "She Likes tea."]


async def test_an_event_that_had_failed_succeeds_by_a_switch(service: Service) -> None:
    service.engine.with_model(Tagged(tag="She"))
    event_id = await service.add("Likes poison.")
    assert (await service.event(event_id))["status"] == "FAILED"
    service.engine.with_model(Tagged())
    replay = await replayed(service)
    assert (await switch(service, replay["id"])).status_code == 200
    event = await service.event(event_id)
    assert (event["status"], event["code"], len(event["results"])) == ("SUCCEEDED", None, 1)


async def test_what_was_taken_back_is_not_replayed_and_not_switched_on(service: Service) -> None:
    undone, later = await service.add("Likes tea."), await service.add("Likes gin.")
    await service.client.post(f"/v1/event/{undone}/undo/")
    answer = await service.client.post(ADD, json={"messages": "Likes mead."} | MAYA)
    await service.client.post(f"/v1/event/{answer.json()['event_id']}/cancel/")
    await service.engine.drain()
    replay = await replayed(service)
    assert replay["accepted"] == 1
    assert (await look(service, replay["id"], "diff/"))["counts"]["same"] == 1
    await service.client.post(f"/v1/event/{later}/undo/")
    refused = await switch(service, replay["id"])
    assert refused.status_code == 409
    assert f"Event {later} was undone since" in error_of(refused)
    assert await texts(service) == []


async def test_a_late_statement_of_a_replay_is_superseded_by_the_memory_that_stays(
    service: Service,
) -> None:
    service.engine.with_model(RulesModel())
    event_id = await service.add("I live in Bern.", timestamp=1_772_000_000)
    # Other options: a batch of its own, also in the replay.
    await service.add("I moved to Rome.", timestamp=1_771_000_000, metadata={"n": 1})
    [bern] = await service.listed(**MAYA)
    replay = await replayed(service)
    answer = await switch(service, replay["id"])
    assert (answer.status_code, answer.json()["kept"]) == (200, 1), answer.text
    body = {"filters": MAYA, "include_superseded": True}
    listed = (await service.client.post(LIST, json=body)).json()["results"]
    assert {row["memory"]: row["replaced_by"] for row in listed} == {
        "User lives in Bern": None,
        "User lives in Rome": bern["id"],
    }
    undone = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert undone.status_code == 200, undone.text
    assert await texts(service) == ["User lives in Rome"]


async def test_the_graph_before_a_switch_is_that_of_the_scope(service: Service) -> None:
    """The replay stored its relations in a scope of its own, and moved them by the switch."""
    service.engine.with_model(RulesModel())
    await service.add("I work at Acme.", timestamp="2026-02-01T10:00:00Z")
    await service.add("I work at Bosch now.", timestamp="2026-05-01T10:00:00Z")
    replay = await replayed(service)
    before = await now(service)
    assert (await switch(service, replay["id"], force=True)).status_code == 200
    assert await graph(service) == await graph(service, as_of=before) == ["User works_at Bosch"]
    assert await graph(service, as_of=before, valid_at="2026-03-15") == ["User works_at Acme"]
    assert await graph(service, valid_at="2026-03-15") == ["User works_at Acme"]
