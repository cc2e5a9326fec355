"""Export and import over HTTP."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from api.http import strict_json
from api.http.streams import MOST_EXPORTS
from deploy.imports.long_histories import shortened
from pipeline.domain.errors import InvalidInput, LaneLost
from pipeline.domain.limits import (
    LARGEST_METADATA_BYTES,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_CATEGORIES,
    MOST_MESSAGES,
)
from pipeline.settings import Settings
from pipeline.transfer.records import MOST_FAULTS, MOST_ROWS, MemoryRecord, read_lines
from tests.integration.replays.test_replay import failed
from tests.support.api_service import MAYA, Service, error_of
from tests.support.slow_reader import read_slowly

EXPORT, IMPORT = "/v1/transfer/export/", "/v1/transfer/import/"
AT = "2026-03-01T09:00:00Z"
TIMES = dict.fromkeys(
    ("said_at", "valid_from", "created_at", "updated_at"), "2026-03-01T09:00:00+00:00"
)


def memory(text: str = "User lives in Porto", **more: Any) -> dict[str, Any]:
    return {"type": "memory", "id": str(uuid4()), "text": text} | MAYA | TIMES | more


async def test_a_memory_is_imported_with_its_times(service: Service) -> None:
    line = memory(metadata={"from": "elsewhere"}, categories=["travel"])
    answer = await service.client.post(IMPORT, json={"records": [line]})
    assert answer.status_code == 200, answer.text
    (accepted,) = answer.json()["events"]
    await service.engine.drain()
    event = await service.event(accepted["event_id"])
    assert (event["event_type"], event["status"]) == ("IMPORT", "SUCCEEDED")
    assert event["note"] == "Imported 1 memory."
    assert [row["event"] for row in event["results"]] == ["ADD"]
    assert "records" not in str(event["payload"]["options"].get("records"))
    (stored,) = await service.listed()
    assert stored["id"] == event["results"][0]["id"]
    assert stored["created_at"].startswith("2026-03-01T09:00:00")
    assert stored["metadata"] == {"from": "elsewhere"}
    (hit,) = await service.search("Where does the user live?")
    assert hit["id"] == stored["id"]


@pytest.mark.parametrize("text", ["User lives in Porto", "家" * 3_000])
def test_a_memory_of_very_many_versions_fits_a_request_with_the_newest(text: str) -> None:
    change = {"event": "UPDATE", "valid_from": AT, "created_at": AT, "metadata": {"n": 1}}
    history = [
        change | {"version": n, "old_text": f"{text} {n - 1}", "new_text": f"{text} {n}"}
        for n in range(1, 1_201)
    ]
    past = [
        {"id": str(uuid4()), "text": f"{text} {n}", "version": n, "stored_at": AT}
        | {"replaced_at": AT, **TIMES}
        for n in range(1, 1_200)
    ]
    whole = memory(f"{text} 1200", version=1_200, history=history, past_states=past)
    line, left_out = shortened(orjson.dumps(whole))
    assert 0 < left_out < 1_200
    assert shortened(line) == (line, 0)
    [record] = read_lines([strict_json.read(line)])
    assert isinstance(record, MemoryRecord)
    assert len(line) < Settings.model_fields["max_body_bytes"].default
    versions = [entry.version for entry in record.history]
    assert versions == list(range(left_out + 1, 1_201))
    assert [state.version for state in record.past_states] == versions[:-1]


async def test_versions_that_are_left_out_of_an_import_are_not_missed(service: Service) -> None:
    change: dict[str, Any] = {"event": "UPDATE", "valid_from": AT, "created_at": AT}
    history = [change | {"version": n, "new_text": f"User owns {n} boats"} for n in (4, 5)]
    line = memory("User owns 5 boats", version=5, history=history)
    answer = await service.client.post(IMPORT, json={"records": [line]})
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    (stored,) = await service.listed()
    url = f"/v1/memories/{stored['id']}/"
    changed = await service.client.put(url, json={"text": "User owns 6 boats"})
    assert changed.json()["version"] == 6
    entries = (await service.client.get(f"{url}history/")).json()
    assert [entry["version"] for entry in entries] == [4, 5, 6]
    restored = await service.client.post(f"{url}restore/", json={"version": 5})
    assert (restored.status_code, restored.json()["memory"]) == (200, "User owns 5 boats")


async def test_a_dry_run_counts_and_stores_nothing(service: Service) -> None:
    lines = [memory(), memory("User owns a Saab")]
    await service.client.post(IMPORT, json={"records": lines[:1]})
    await service.engine.drain()
    body = {"records": lines, "dry_run": True}
    answer = (await service.client.post(IMPORT, json=body)).json()
    assert answer == {"dry_run": True, "new": {"memory": 1}, "stored": {"memory": 1}}
    assert len(await service.listed()) == 1


@pytest.fixture
async def stored_import(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """An import whose worker lost its lane after it had stored the lines."""

    async def lane_lost(*_: Any, **__: Any) -> None:
        raise LaneLost

    answer = await service.client.post(IMPORT, json={"records": [memory()]})
    with monkeypatch.context() as patch:
        patch.setattr(service.engine.ledger.lanes, "settle", lane_lost)
        await service.engine.drain()
    event_id = str(answer.json()["events"][0]["event_id"])
    assert (await service.event(event_id))["status"] == "RUNNING"
    assert len(await service.listed()) == 1
    return event_id


async def test_an_import_whose_lines_are_stored_is_not_cancelled(
    service: Service, stored_import: str
) -> None:
    refused = await service.client.post(f"/v1/event/{stored_import}/cancel/")
    assert (refused.status_code, "memories are stored" in error_of(refused)) == (409, True)


@pytest.mark.parametrize("path", ["/v1/memories/?user_id=maya", "/v2/entities/user/maya/"])
async def test_a_deletion_ends_an_import_whose_lines_are_stored_as_succeeded(
    service: Service, stored_import: str, path: str
) -> None:
    await service.client.delete(path)
    assert (await service.event(stored_import))["status"] == "SUCCEEDED"


async def test_an_imported_event_is_replayed_with_the_others(service: Service) -> None:
    own = await failed(service.engine)
    at = TIMES["said_at"]
    line: dict[str, Any] = {"type": "event", "id": str(uuid4()), "event_type": "ADD"} | MAYA
    line |= {"status": "FAILED", "failure_code": "LLM_BAD_OUTPUT"}
    line |= {"options": {"metadata": {"n": 1}}, "created_at": at, "completed_at": at}
    line["messages"] = [{"role": "user", "content": "I like tea.", "said_at": at}]
    await service.client.post(IMPORT, json={"records": [line]})
    await service.engine.drain()
    answer = await service.client.post("/v1/events/replay/", json={"code": "LLM_BAD_OUTPUT"})
    assert answer.status_code == 200, answer.text
    event_ids = answer.json()["event_ids"]
    assert len(event_ids) == 2
    assert str(own) in event_ids
    await service.engine.drain()
    assert sorted(await service.engine.texts()) == ["User likes jazz", "User likes tea"]


async def test_a_project_has_few_exports_at_once(service: Service) -> None:
    with ExitStack() as others:
        for _ in range(MOST_EXPORTS):
            others.enter_context(service.api.exports.place(service.engine.project.id))
        refused = await service.client.get(EXPORT)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
    assert (await service.client.get(EXPORT)).status_code == 200


async def test_the_export_has_a_header_and_an_end(service: Service) -> None:
    await service.add("I live in Porto.")
    answer = await service.client.get(EXPORT, params=MAYA)
    assert answer.headers["content-type"] == "application/x-ndjson"
    rows = [orjson.loads(line) for line in answer.text.splitlines()]
    assert rows[0]["type"] == "header"
    assert rows[-1]["lines"]["event"] == 1
    other = await service.client.get(EXPORT, params={"user_id": "noah"})
    assert [orjson.loads(line)["type"] for line in other.text.splitlines()] == ["header", "end"]


async def test_the_export_ends_early_once_its_key_is_revoked(service: Service) -> None:
    await service.add("I live in Porto.")
    made = await service.client.post("/v1/keys/", json={"name": "x", "scope": "read"})
    headers = {"Authorization": f"Token {made.json()['key']}"}

    async def revoke() -> None:
        await service.client.delete(f"/v1/keys/{made.json()['id']}/")

    exported = await read_slowly(service.app, EXPORT, headers, after_first=revoke)
    assert [orjson.loads(line)["type"] for line in exported.splitlines()] == ["header"]
    # Its place and its connection are free again.
    with ExitStack() as others:
        for _ in range(MOST_EXPORTS):
            others.enter_context(service.api.exports.place(service.engine.project.id))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (memory() | {"type": "fact"}, "type"),
        (memory() | {"colour": "red"}, "colour"),
        (memory() | {"said_at": "yesterday"}, "said_at"),
        (memory() | {"id": "7"}, "id"),
        ({"type": "header"}, "type"),
    ],
)
async def test_a_line_that_is_not_valid_is_refused_by_its_place(
    service: Service, line: dict[str, Any], place: str
) -> None:
    answer = await service.client.post(IMPORT, json={"records": [line]})
    assert answer.status_code in (400, 422)
    assert place in answer.json()["error"]


@pytest.mark.parametrize(
    "more",
    [
        # Before the first and behind the last time that Python can represent, in UTC.
        {"said_at": "0001-01-01T00:00:00+05:00"},
        {"created_at": "9999-12-31T23:59:59-05:00"},
        {"valid_from": "9999-12-31T23:59:59.999999Z"},
        {"user_id": "*"},
        {"user_id": " "},
    ],
)
async def test_a_line_that_no_read_could_show_is_refused(
    service: Service, more: dict[str, str]
) -> None:
    """One such memory would end every list and export of the project with an error."""
    answer = await service.client.post(IMPORT, json={"records": [memory(**more)]})
    assert answer.status_code == 400, answer.text
    assert error_of(answer).startswith(f"records.0.memory.{next(iter(more))}: ")


@pytest.mark.parametrize("at", ["0001-01-02T00:00:00Z", "9999-12-31T18:59:58-05:00"])
async def test_the_earliest_and_latest_times_are_imported_and_exported(
    service: Service, at: str
) -> None:
    answer = await service.client.post(
        IMPORT, json={"records": [memory() | dict.fromkeys(TIMES, at)]}
    )
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    assert len(await service.listed()) == 1
    exported = await service.client.get(EXPORT)
    assert [orjson.loads(line)["type"] for line in exported.content.splitlines()][-1] == "end"


async def test_an_import_cannot_be_undone(service: Service) -> None:
    answer = await service.client.post(IMPORT, json={"records": [memory()]})
    await service.engine.drain()
    event_id = answer.json()["events"][0]["event_id"]
    undo = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert undo.status_code == 409
    assert "delete or erase" in undo.json()["error"]


@pytest.mark.parametrize("decision", ["resolved_by", "resolution"])
async def test_a_conflict_with_half_a_decision_is_refused(service: Service, decision: str) -> None:
    value = str(uuid4()) if decision == "resolved_by" else "BOTH"
    line = {
        "type": "conflict",
        "id": str(uuid4()),
        "slot": "user home",
        "event_id": str(uuid4()),
        "created_at": TIMES["created_at"],
        decision: value,
    }
    answer = await service.client.post(IMPORT, json={"records": [MAYA | line]})
    assert answer.status_code == 400, answer.text
    assert "`resolved_by` and `resolution` together" in answer.text
    listed = await service.client.get("/v1/conflicts/")
    assert listed.status_code == 200


def event(**more: Any) -> dict[str, Any]:
    """A line of an event with one message."""
    own = {"type": "event", "id": str(uuid4()), "event_type": "ADD", "status": "SUCCEEDED"}
    times = {"created_at": TIMES["created_at"], "completed_at": TIMES["created_at"]}
    return own | MAYA | times | {"messages": [turn()]} | more


def turn(**more: Any) -> dict[str, Any]:
    return {"role": "user", "content": "Hi.", "said_at": TIMES["said_at"]} | more


def change(**more: Any) -> dict[str, Any]:
    own = {"version": 1, "event": "ADD", "new_text": "User lives in Porto"}
    return own | {"valid_from": TIMES["said_at"], "created_at": TIMES["said_at"]} | more


def member(number: int) -> dict[str, Any]:
    return {"memory_id": str(UUID(int=number)), "against_id": str(uuid4()), "text_hash": ""}


OWNER = {"type": "owner", "kind": "user", "id": "maya", "name": "Maya"}
OWNER |= {name: TIMES[name] for name in ("created_at", "updated_at")}
CONFLICT = MAYA | {"type": "conflict", "id": str(uuid4()), "slot": "home"}
CONFLICT |= {"event_id": str(uuid4()), "created_at": TIMES["created_at"]}
GRAPH_LINE = {"source": "a", "relation": "b", "destination": "c", "reason": "d"}
LONG = "x" * (LONGEST_TEXT + 1)
LARGE = {"key": "x" * 4 * LARGEST_METADATA_BYTES}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (memory(LONG), "memory.text"),
        (memory(metadata=LARGE), "memory.metadata"),
        (memory(categories=["x"] * (MOST_CATEGORIES + 1)), "memory.categories"),
        (memory(categories=["x" * (LONGEST_NAME + 1)]), "memory.categories.0"),
        (memory(history=[change(new_text=LONG)]), "memory.history.0.new_text"),
        (memory(history=[change(metadata=LARGE)]), "memory.history.0.metadata"),
        (memory(history=[change(event="ZZZ")]), "memory.history.0.event"),
        (memory(history=[change(), change()]), "memory: The history gives a version twice"),
        (memory(history=[change(version=2)]), "memory: The history gives a later version"),
        (event(messages=[turn()] * (MOST_MESSAGES + 1)), "event.messages"),
        (event(messages=[turn(content=LONG)]), "event.messages.0.content"),
        (event(messages=[turn(name="x" * (LONGEST_NAME + 1))]), "event.messages.0.name"),
        (
            event(graph_receipt=[GRAPH_LINE | {"outcome": "ZZZ", "message_ordinal": 0}]),
            "event.graph_receipt.0.outcome",
        ),
        (event(graph_status="ZZZ"), "event.graph_status"),
        (OWNER | {"name": "x" * (LONGEST_NAME + 1)}, "owner.name"),
        (OWNER | {"metadata": LARGE}, "owner.metadata"),
        (CONFLICT | {"members": [member(n) for n in range(MOST_ROWS + 1)]}, "conflict.members"),
    ],
)
def test_a_value_beyond_its_limit_is_refused_by_its_line(line: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_lines([memory(), line])
    assert f"records.1.{place}" in str(refused.value)


async def test_the_first_faults_of_an_import_are_named(service: Service) -> None:
    lines = [memory() | {"said_at": "yesterday", "version": 0} for _ in range(200)]
    answer = await service.client.post(IMPORT, json={"records": lines})
    assert answer.status_code == 400
    assert answer.json()["error"].count("records.") == MOST_FAULTS
    assert "records.0.memory.said_at" in answer.json()["error"]
    assert await service.listed() == []


@pytest.mark.parametrize("records", [[], [{}] * 1_001, "x", None])
async def test_an_import_has_1_to_1000_lines(service: Service, records: Any) -> None:
    answer = await service.client.post(IMPORT, json={"records": records})
    assert answer.status_code == 400
    assert "records" in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b'{"type": "header"}\n{"type": "end"}\n', "application/json"),
        (b'{"type": "header"}\n{"type": "end"}\n', "application/x-ndjson"),
        (b"type=header", "application/x-www-form-urlencoded"),
        (b"", "application/json"),
    ],
)
async def test_a_body_that_is_no_json_object_is_answered_with_the_key_to_send(
    service: Service, content: bytes, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    answer = await service.client.post(IMPORT, content=content, headers=headers)
    assert answer.status_code == 400
    assert "JSON object with `records`" in error_of(answer), answer.text
