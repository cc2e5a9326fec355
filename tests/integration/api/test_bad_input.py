"""Bad input and odd paths over HTTP, and the description of the API."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from tests.support.api_service import ADD, LIST, LIVES, MAYA, SEARCH, Service, error_of, verbatim

ONE = f"/v1/memories/{UUID(int=1)}/"
DEEP = "[" * 100_000 + "]" * 100_000
BAD: dict[str, tuple[str, str, Any, int, str]] = {
    # case: method, path, body, status, words of the message
    "no ids": ("POST", ADD, {"messages": "x"}, 400, "user_id, agent_id, app_id, run_id"),
    "no ids, version 1": ("POST", "/v1/memories/", {"messages": "x"}, 400, "user_id"),
    "no messages": ("POST", ADD, MAYA, 400, "messages"),
    "an empty list of messages": ("POST", ADD, MAYA | {"messages": []}, 400, "messages"),
    "a message without content": ("POST", ADD, MAYA | {"messages": [{}]}, 400, "content"),
    "an unknown role": (
        "POST",
        ADD,
        MAYA | {"messages": [{"role": "narrator", "content": "x"}]},
        400,
        "use user, assistant, system or tool",
    ),
    "a body that is no JSON": ("POST", ADD, b"{messages: x}", 400, "not valid JSON"),
    "a body that is not UTF-8": ("POST", ADD, b'{"messages": "\xff\xfe"}', 400, "body"),
    "a body of JSON too deep": ("POST", ADD, b'{"messages": %s}' % DEEP[:80_000].encode(), 400, ""),
    "a body that is a list": ("POST", ADD, [1], 400, "dictionary"),
    "no body": ("POST", ADD, b"", 400, "missing"),
    "an unset time of Go": (
        *("POST", ADD, LIVES | {"timestamp": "0001-01-01T00:00:00Z"}, 400, "Leave the field out"),
    ),
    "the last time": (
        *("POST", ADD, LIVES | {"timestamp": "9999-12-31T23:59:59.999999Z"}, 400, "end of time"),
    ),
    "a bad timestamp": ("POST", ADD, LIVES | {"timestamp": "soon"}, 400, "Unix seconds"),
    "a bad expiration": ("POST", ADD, LIVES | {"expiration_date": "x"}, 400, "expiration_date"),
    "metadata that is a list": ("POST", ADD, LIVES | {"metadata": [1]}, 400, "metadata"),
    "NUL in a text": ("POST", ADD, LIVES | {"messages": "a\0b"}, 400, "NUL"),
    "NUL in an id": ("POST", ADD, LIVES | {"user_id": "a\0b"}, 400, "NUL"),
    "NUL in metadata": ("POST", ADD, LIVES | {"metadata": {"a": "\0"}}, 400, "NUL"),
    "half a surrogate pair": (
        "POST",
        ADD,
        b'{"messages": "\\ud800", "user_id": "maya"}',
        400,
        "JSON",
    ),
    "an id too long": ("POST", ADD, LIVES | {"user_id": "x" * 513}, 400, "user_id"),
    "a bad memory id": ("GET", "/v1/memories/7/", None, 400, "memory_id should be a valid UUID"),
    "a bad memory id to change": ("PUT", "/v1/memories/7/", {"text": "x"}, 400, "memory_id"),
    "a bad memory id to delete": ("DELETE", "/v1/memories/7/", None, 400, "memory_id"),
    "a bad memory id's history": ("GET", "/v1/memories/7/history/", None, 400, "memory_id"),
    "a bad event id": ("GET", "/v1/event/7/", None, 400, "event_id should be a valid UUID"),
    "a wait too long": ("GET", f"/v1/event/{UUID(int=1)}/?wait=61", None, 400, "wait"),
    "an unknown memory": ("GET", ONE, None, 404, "Memory not found!"),
    "an unknown memory to change": ("PUT", ONE, {"text": "x"}, 404, "Memory not found!"),
    "an unknown memory to delete": ("DELETE", ONE, None, 404, "Memory not found!"),
    "an unknown memory's history": ("GET", f"{ONE}history/", None, 404, "Memory not found!"),
    "an unknown event": ("GET", f"/v1/event/{UUID(int=1)}/", None, 404, "Event not found"),
    "an update of nothing": ("PUT", ONE, {}, 400, "at least one of text, metadata"),
    "an update to no text": ("PUT", ONE, {"text": ""}, 400, "text"),
    "an update to blanks": ("PUT", ONE, {"text": "  "}, 400, "text"),
    "an update to NUL": ("PUT", ONE, {"text": "\0"}, 400, "NUL"),
    "no filter": ("POST", LIST, {}, 400, "user_id, agent_id, app_id, run_id"),
    "an empty filter": ("POST", LIST, {"filters": {}}, 400, "user_id"),
    "a filter without an id": ("POST", LIST, {"filters": {"text": "x"}}, 400, "user_id"),
    "an unknown filter key": ("POST", LIST, {"filters": {"user": "x"}}, 400, "Allowed: AND, OR"),
    "an unknown operator": (
        "POST",
        LIST,
        {"filters": {"user_id": {"gt": "x"}}},
        400,
        "Allowed: eq, ne, in",
    ),
    "a bad time in a filter": (
        "POST",
        LIST,
        {"filters": MAYA | {"created_at": {"gte": "soon"}}},
        400,
        "Unix seconds",
    ),
    "a bad id in a filter": ("POST", LIST, {"filters": MAYA | {"memory_ids": ["x"]}}, 400, "UUID"),
    "a filter that is a string": ("POST", LIST, {"filters": "maya"}, 400, "filters"),
    "NUL in a filter": ("POST", LIST, {"filters": {"user_id": "\0"}}, 400, "NUL"),
    "page 0": ("POST", f"{LIST}?page=0", {"filters": MAYA}, 400, "page starts at 1"),
    "page -1": ("POST", f"{LIST}?page=-1", {"filters": MAYA}, 400, "page starts at 1"),
    "page x": ("POST", f"{LIST}?page=x", {"filters": MAYA}, 400, "page"),
    "a page past counting": ("POST", f"{LIST}?page={10**19}", {"filters": MAYA}, 404, "page"),
    "page_size 0": ("POST", f"{LIST}?page_size=0", {"filters": MAYA}, 400, "page_size"),
    "page_size 0 in the body": ("POST", LIST, {"filters": MAYA, "page_size": 0}, 400, "page_size"),
    "page_size 201": ("POST", f"{LIST}?page_size=201", {"filters": MAYA}, 400, "page_size"),
    "a blank query": (
        "POST",
        SEARCH,
        {"query": " ", "filters": MAYA},
        400,
        "give the text to search",
    ),
    "no query": ("POST", SEARCH, {"filters": MAYA}, 400, "query"),
    "top_k 0": ("POST", SEARCH, {"query": "x", "filters": MAYA, "top_k": 0}, 400, "top_k"),
    "threshold 2": ("POST", SEARCH, {"query": "x", "filters": MAYA, "threshold": 2}, 400, "thresh"),
    "a search without an id": ("POST", SEARCH, {"query": "x"}, 400, "user_id"),
    "an unknown status": ("GET", "/v1/events/?status=done", None, 400, "PENDING, RUNNING"),
    "a bad start": ("GET", "/v1/events/?start_date=soon", None, 400, "start_date"),
    "NUL in a query parameter": ("GET", "/v1/events/?user_id=a%00b", None, 400, "NUL"),
    "NUL in a path": ("GET", "/v1/memories/user/%00/", None, 400, "NUL"),
    "bytes in a filter": ("GET", "/v1/memories/?filters={'x':b'a'}", None, 400, "Python literal"),
    "infinity in a delete": ("DELETE", "/v1/memories/?metadata={'x':1e999}", None, 400, "JSON"),
    "NUL in a delete": ("DELETE", "/v1/memories/?filters={'a':'\\x00'}", None, 400, "NUL"),
    "NUL in the body of a delete": ("DELETE", "/v1/memories/", {"user_id": "\0"}, 400, "NUL"),
    "NUL in an event type": ("GET", "/v1/events/?event_type=%00", None, 400, "NUL"),
    "events page 0": ("GET", "/v1/events/?page=0", None, 400, "page starts at 1"),
    "events page_size 0": ("GET", "/v1/events/?page_size=0", None, 400, "page_size"),
    "an events page past counting": ("GET", f"/v1/events/?page={10**19}", None, 404, "page"),
    "a far page of changes": ("GET", "/v1/memories/events/?page=1000000000", None, 404, "page"),
    "a far page of suggestions": ("GET", "/v1/suggestions/?page=1000000000", None, 404, "page"),
    "a far offset of conflicts": ("GET", "/v1/conflicts/?offset=1000000000", None, 404, "page"),
    "an export of a blank id": ("GET", "/v1/transfer/export/?user_id=", None, 400, "blank"),
    "an export of a blank id and another": (
        "GET",
        "/v1/transfer/export/?user_id=%20&agent_id=bot",
        None,
        400,
        "user_id is blank",
    ),
    "events of a blank id": ("GET", "/v1/events/?run_id=", None, 400, "run_id is blank"),
    "changes of a blank id": ("GET", "/v1/changes/?from=2026-01-01&app_id=", None, 400, "blank"),
    "an unknown route": ("GET", "/v9/nothing/", None, 404, "There is no route"),
    "an unknown route below a known one": ("GET", "/v1/nothing/", None, 404, "There is no route"),
    "a wrong method": ("DELETE", ADD, None, 405, "use POST"),
    "a wrong method for an event": ("POST", f"/v1/event/{UUID(int=1)}/", {}, 405, "use GET"),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "holds"), BAD.values(), ids=BAD)
async def test_bad_input_is_refused_and_the_refusal_says_what_to_change(
    shared: Service, method: str, path: str, body: object, status: int, holds: str
) -> None:
    sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    accepted = len(shared.engine.hints.waiting)
    answer = await shared.client.request(method, path, content=sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert holds in error_of(answer)
    assert len(shared.engine.hints.waiting) == accepted


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "an id of an index's size inside filters": (ADD, {"messages": "x", "filters": {}}),
    "an infinite number": (ADD, LIVES | {"metadata": {"n": float("inf")}}),
    "a number past 64 bits": (ADD, LIVES | {"metadata": {"n": 2**70}}),
    "a time at the end of time": (ADD, LIVES | {"timestamp": "9999-12-31T23:59:59-14:00"}),
    "a time at its start": (ADD, LIVES | {"timestamp": "0001-01-01T00:00:00+14:00"}),
    "metadata compared with infinity": (
        LIST,
        {"filters": MAYA | {"metadata": {"n": float("inf")}}},
    ),
    "a filter from the end of time": (
        LIST,
        {"filters": MAYA | {"created_at": {"lt": "9999-12-31T23:59:59-14:00"}}},
    ),
    "a list of no users": (LIST, {"filters": {"user_id": []}}),
    "metadata that is null": (LIST, {"filters": MAYA | {"metadata": {"n": None}}}),
    "an expiration within times": (LIST, {"filters": MAYA | {"expiration_date": {"gte": 0}}}),
    "a time that is null": (LIST, {"filters": MAYA | {"created_at": {"lt": None}}}),
    "a query of signs only": (SEARCH, {"query": "!?&|:*", "filters": MAYA}),
    "a query of many words": (SEARCH, {"query": "word " * 1_500, "filters": MAYA}),
}
ODD["an id of an index's size inside filters"][1]["filters"] = {
    "user_id": "".join(f"{n:x}" for n in range(3_000))
}


@pytest.mark.parametrize(("path", "body"), ODD.values(), ids=ODD.keys())
async def test_odd_input_is_taken_or_refused_and_never_blamed_on_the_ledger(
    service: Service, path: str, body: dict[str, Any]
) -> None:
    answer = await service.client.post(path, content=json.dumps(body))
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert error_of(answer)
    await service.engine.drain()


async def test_an_edit_with_numbers_json_does_not_know_is_no_outage(service: Service) -> None:
    await verbatim(service, "Maya likes jazz")
    [stored] = await service.listed()
    body = b'{"metadata": {"n": NaN}}'
    answer = await service.client.put(f"/v1/memories/{stored['id']}/", content=body)
    assert answer.status_code in (200, 400), answer.text


@pytest.mark.parametrize(
    "path", ["//v1/ping/", "/v1/ping", "//v1/ping", "/v1//ping/", "/v1/ping//"]
)
async def test_clients_may_double_slashes_and_leave_out_the_last(
    shared: Service, path: str
) -> None:
    assert (await shared.client.get(f"http://memlane{path}")).status_code == 200


async def test_adds_and_reads_work_without_the_last_slash(service: Service) -> None:
    answer = await service.client.post("http://memlane//v3/memories/add", json=LIVES)
    await service.engine.drain()
    event = await service.client.get(f"/v1/event/{answer.json()['event_id']}")
    assert event.json()["status"] == "SUCCEEDED"
    listed = await service.client.post("/v3/memories", json={"filters": MAYA})
    assert listed.json()["count"] == 1


async def test_the_api_describes_itself(service: Service) -> None:
    described = (await service.client.get("/openapi.json")).json()
    assert ADD in described["paths"]
    assert (await service.client.get("/docs")).status_code == 200
