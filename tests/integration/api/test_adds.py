"""Adds over HTTP: ids, messages, times, and what comes back."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from pipeline.stores import Ledger
from tests.support.api_service import ADD, LIVES, MAYA, Service, error_of, serving


async def test_an_add_is_pending_then_worked_off_and_its_event_is_the_receipt(
    service: Service,
) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"metadata": {"trip": "x"}})
    assert answer.status_code == 200
    accepted = answer.json()
    assert accepted == {"event_id": accepted["event_id"], "status": "PENDING"}
    waiting = await service.event(accepted["event_id"])
    assert (waiting["status"], waiting["results"], waiting["completed_at"]) == ("PENDING", [], None)
    await service.engine.drain()
    event = await service.event(accepted["event_id"])
    assert event["status"] == "SUCCEEDED"
    [line] = event["results"]
    [stored] = await service.listed()
    assert (line["event"], line["id"]) == ("ADD", stored["id"])
    assert line["memory"] == line["data"]["memory"] == stored["memory"]
    assert "Berlin" in stored["memory"]
    assert line["reason"]
    assert (event["error"], event["code"]) == (None, None)
    assert event["payload"]["messages"] == [{"role": "user", "content": "I live in Berlin."}]
    assert event["payload"]["user_id"] == "maya"
    assert event["metadata"] == stored["metadata"] == {"trip": "x"}
    assert event["latency"] > 0
    assert {run["stage"] for run in event["stages"]} >= {"extract", "apply"}


async def test_a_version_1_add_is_queued_in_the_words_of_its_clients(service: Service) -> None:
    answer = await service.client.post("/v1/memories/", json=LIVES | {"output_format": "v1.1"})
    body = answer.json()
    [queued] = body["results"]
    assert (queued["status"], body["relations"]) == ("PENDING", [])
    assert queued["message"]
    await service.engine.drain()
    assert (await service.event(queued["event_id"]))["status"] == "SUCCEEDED"


@pytest.mark.parametrize("version", [{}, {"output_format": "v1.0"}, {"version": "v2"}])
async def test_a_version_1_add_answers_with_a_bare_list_unless_v1_1_is_asked_for(
    version: dict[str, str], service: Service
) -> None:
    answer = await service.client.post("/v1/memories/", json=LIVES | version)
    [queued] = answer.json()
    assert queued["status"] == "PENDING"


async def test_an_add_without_inference_answers_with_what_was_stored(staffed: Service) -> None:
    answer = await staffed.client.post(ADD, json=LIVES | {"infer": False})
    body = answer.json()
    assert (body["status"], body["message"]) == ("SUCCEEDED", "Memories stored.")
    [line] = body["results"]
    assert (line["event"], line["data"]) == ("ADD", {"memory": "I live in Berlin."})
    [stored] = await staffed.listed()
    assert (stored["id"], stored["memory"]) == (line["id"], "I live in Berlin.")


async def test_a_version_1_add_may_wait_for_its_results(staffed: Service) -> None:
    answer = await staffed.client.post("/v1/memories/", json=LIVES | {"async_mode": False})
    [line] = answer.json()
    assert line["event"] == "ADD"
    assert "Berlin" in line["memory"]


async def test_an_add_that_takes_longer_than_a_request_may_is_pending(ledger: Ledger) -> None:
    async with serving(ledger, sync_wait_s=0.01) as slow:
        answer = await slow.client.post(ADD, json=LIVES | {"infer": False})
        body = answer.json()
        assert (body["status"], body["results"]) == ("PENDING", [])
        await slow.engine.drain()
        assert (await slow.event(body["event_id"]))["status"] == "SUCCEEDED"


async def test_a_turn_of_small_talk_succeeds_with_a_note(service: Service) -> None:
    event = await service.event(await service.add("How are you today?"))
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert event["note"]


async def test_an_id_that_is_null_or_blank_is_as_good_as_none(service: Service) -> None:
    body = LIVES | {"agent_id": None, "app_id": "", "run_id": " "}
    answer = await service.client.post(ADD, json=body)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    [stored] = await service.listed()
    assert (stored["agent_id"], stored["app_id"], stored["run_id"]) == (None, None, None)


async def test_ids_inside_filters_are_the_scope(service: Service) -> None:
    body = {"messages": "I like jazz.", "filters": MAYA}
    assert (await service.client.post(ADD, json=body)).status_code == 200
    await service.engine.drain()
    [stored] = await service.listed()
    assert stored["user_id"] == "maya"


async def test_what_users_say_reaches_no_log(
    service: Service, logged: list[MutableMapping[str, Any]]
) -> None:
    await service.add("My cat is called Zerberus.", metadata={"where": "Zerberus"})
    await service.search("Zerberus", threshold=0)
    [stored] = await service.listed()
    await service.client.put(f"/v1/memories/{stored['id']}/", json={"text": "Zerberus the cat"})
    assert {line["event"] for line in logged} >= {"stage_finished", "batch_settled"}
    assert not [line for line in logged if "Zerberus" in str(line)]


async def test_a_timestamp_says_when_it_was_true(service: Service) -> None:
    await service.add("I like jazz.", timestamp=1_772_323_200)
    [stored] = await service.listed()
    assert stored["timestamp"].startswith("2026-03-01T00:00:00")
    assert stored["created_at"].startswith("2026-03-01T00:00:00")


async def test_numbers_that_json_does_not_know_are_kept_as_null_or_refused(
    service: Service,
) -> None:
    body = b'{"messages": "I like jazz.", "user_id": "maya", "metadata": {"n": NaN}}'
    answer = await service.client.post(ADD, content=body)
    assert answer.status_code in (200, 400), answer.text
    await service.engine.drain()
    assert all(row["metadata"] in (None, {"n": None}) for row in await service.listed())


async def test_a_form_is_refused_with_the_content_type_to_send(service: Service) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await service.client.post(ADD, content=json.dumps(LIVES), headers=form)
    assert answer.status_code == 400
    assert "Content-Type: application/json" in error_of(answer)
    assert "form-urlencoded" in error_of(answer)


async def test_a_body_over_the_limit_is_refused_as_json(service: Service) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"messages": "x" * 100_001})
    assert answer.status_code == 413
    assert "MEMLANE_MAX_BODY_BYTES" in error_of(answer)


async def test_an_event_shows_its_priority(service: Service) -> None:
    low = await service.client.post(ADD, json=LIVES | {"priority": "low"})
    normal = await service.client.post(ADD, json=LIVES)
    events = [await service.event(answer.json()["event_id"]) for answer in (low, normal)]
    assert [event["priority"] for event in events] == ["low", "normal"]


async def test_an_unknown_priority_is_refused(service: Service) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"priority": "high"})
    assert answer.status_code == 400
    assert "normal" in error_of(answer)
