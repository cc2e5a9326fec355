"""The REST API of Mem0's open-source server: shapes, waits, and the requests of its clients."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from api.http import large_answers
from api.oss import routes
from pipeline.stores import Ledger
from tests.support.api_service import MAYA, Service, error_of, serving
from tests.support.stack import wait_until


@pytest.fixture
async def oss(staffed: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client that sends its key and paths as the plugins do: X-API-Key, no trailing slash."""
    transport = httpx.ASGITransport(staffed.app, raise_app_exceptions=False)
    headers = {"X-API-Key": staffed.key}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://memlane", headers=headers
    ) as client:
        yield client


async def added(oss: httpx.AsyncClient, text: str, **body: object) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": text}]
    answer = await oss.post("/memories", json={"messages": messages} | MAYA | body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def test_an_add_answers_with_its_results(oss: httpx.AsyncClient) -> None:
    [first] = await added(oss, "I live in Berlin.", metadata={"channel": "web"})
    assert (first["event"], set(first)) == ("ADD", {"id", "memory", "event"})
    assert "Berlin" in first["memory"]

    [moved] = await added(oss, "I moved to Lisbon.")
    assert moved["event"] == "UPDATE"
    assert "Berlin" in moved["previous_memory"]


@pytest.mark.parametrize("infer", [False, None])
async def test_an_add_takes_the_options_of_the_open_source_server(
    oss: httpx.AsyncClient, infer: bool | None
) -> None:
    [line] = await added(
        oss, "I like tea.", infer=infer, prompt="Note drinks.", expiration_date=None, run_id="r1"
    )
    [row] = (await oss.get("/memories", params={"run_id": "r1"})).json()["results"]
    assert (row["id"], row["run_id"], row["user_id"]) == (line["id"], "r1", "maya")


async def test_an_add_that_takes_longer_than_the_wait_is_accepted_and_names_its_event(
    ledger: Ledger,
) -> None:
    async with serving(ledger, sync_wait_s=0.01) as service:
        answer = await service.client.post(
            "/memories", json={"messages": [{"role": "user", "content": "I like tea."}]} | MAYA
        )
        assert answer.status_code == 200
        body = answer.json()
        assert (body["results"], body["status"]) == ([], "PENDING")
        await service.engine.drain()
        assert (await service.event(body["event_id"]))["status"] == "SUCCEEDED"
        assert len((await service.client.get("/memories", params=MAYA)).json()["results"]) == 1


@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("ending", ["cancel", "delete", "erase"])
async def test_an_add_that_is_cancelled_while_it_waits_is_no_failure_of_the_server(
    ledger: Ledger, ending: str, infer: bool
) -> None:
    """A 502 would be repeated by a client: the user's words would return after an erasure."""
    async with serving(ledger, sync_wait_s=20) as service:
        body = {"messages": "I like tea.", "infer": infer} | MAYA
        waiting = asyncio.create_task(service.client.post("/memories", json=body))
        await wait_until(lambda: has_event(service), within_s=10, what="the event")
        [event] = (await service.client.get("/v1/events/")).json()["results"]
        if ending == "cancel":
            await service.client.post(f"/v1/event/{event['id']}/cancel/")
        else:
            path = "/v2/entities/user/maya/" if ending == "erase" else "/v1/memories/?user_id=maya"
            await service.client.delete(path)
        answer = await waiting
        assert answer.status_code == 409, answer.text
        assert answer.json()["code"] == "CANCELLED"
        assert event["id"] in error_of(answer)


async def has_event(service: Service) -> bool:
    return bool((await service.client.get("/v1/events/")).json()["results"])


async def test_a_repeated_add_with_an_idempotency_key_adds_once(oss: httpx.AsyncClient) -> None:
    body = {"messages": "I like tea."} | MAYA
    headers = {"Idempotency-Key": "turn-1"}
    ids = [
        (await oss.post("/memories", json=body, headers=headers)).json()["event_id"] for _ in "ab"
    ]
    assert ids[0] == ids[1]


async def test_reads_have_the_shape_of_the_open_source_library(oss: httpx.AsyncClient) -> None:
    [line] = await added(oss, "I live in Berlin.", metadata={"channel": "web"})
    memory = (await oss.get(f"/memories/{line['id']}")).json()
    assert memory["hash"] == hashlib.md5(memory["memory"].encode()).hexdigest()
    assert memory["metadata"] == {"channel": "web"}
    assert (await oss.get("/memories", params=MAYA)).json() == {"results": [memory]}

    search = {"query": "live in Berlin", "filters": MAYA, "top_k": 5, "explain": True}
    [hit] = (await oss.post("/search", json=search)).json()["results"]
    assert hit["id"] == memory["id"]
    assert hit["score_details"]["semantic"] > 0
    older = {"query": "live in Berlin", "user_id": "maya", "limit": 1}
    [hit] = (await oss.post("/search", json=older)).json()["results"]
    assert "score_details" not in hit


async def test_large_answers_are_built_beside_the_event_loop(
    oss: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    [line] = await added(oss, "I live in \u00c5lesund.", infer=False, metadata={"a": [None, 1.5]})
    question = {"query": "Where?", "filters": MAYA, "threshold": 0.0, "explain": True}

    async def answers() -> list[bytes]:
        paths = ("/memories?user_id=maya", "/memories", f"/memories/{line['id']}/history")
        read = [await oss.get(path) for path in (*paths, "/entities")]
        read.append(await oss.post("/search", json=question))
        assert {answer.status_code for answer in read} == {200}
        return [answer.content for answer in read]

    small = await answers()
    built = 0

    async def beside(build: Callable[[], Any]) -> Any:
        nonlocal built
        built += 1
        return build()

    monkeypatch.setattr(large_answers, "INLINE_ROWS", -1)
    monkeypatch.setattr(large_answers, "beside_loop", beside)
    assert await answers() == small
    assert built == len(small)


async def test_a_memory_is_changed_deleted_and_its_history_kept(oss: httpx.AsyncClient) -> None:
    [line] = await added(oss, "I live in Berlin.")
    path = f"/memories/{line['id']}"
    answer = await oss.put(path, json={"text": "Maya lives in Porto."})
    assert answer.json() == {"message": "Memory updated successfully!"}
    assert (await oss.get(path)).json()["memory"] == "Maya lives in Porto."
    assert (await oss.delete(path)).json() == {"message": "Memory deleted successfully"}
    assert (await oss.get(path)).json() is None
    states = (await oss.get(f"{path}/history")).json()
    assert [state["event"] for state in states] == ["ADD", "UPDATE", "DELETE"]
    assert [state["is_deleted"] for state in states] == [False, False, True]
    assert states[1]["new_memory"] == "Maya lives in Porto."
    assert (await oss.put(path, json={"text": "again"})).status_code == 404


async def test_entities_are_listed_and_erased(
    oss: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await added(oss, "I live in Berlin.", agent_id="bot")
    await added(oss, "I like tea.", user_id="noah")
    rows = (await oss.get("/entities")).json()
    assert {(row["type"], row["id"], row["total_memories"]) for row in rows} == {
        ("user", "maya", 1),
        ("agent", "bot", 1),
        ("user", "noah", 1),
    }
    monkeypatch.setattr(routes, "WAIT_S", 0.01)  # no sweeper runs the erasure here
    assert (await oss.delete("/entities/user/maya")).json()["message"] == "Entity deleted"
    assert (await oss.get("/memories", params=MAYA)).json() == {"results": []}


async def test_all_memories_of_an_owner_are_deleted_and_others_stay(
    oss: httpx.AsyncClient,
) -> None:
    await added(oss, "I live in Berlin.")
    await added(oss, "I like tea.", user_id="noah")
    assert (await oss.delete("/memories")).status_code == 400
    answer = await oss.delete("/memories", params=MAYA)
    assert answer.json()["message"] == "All relevant memories deleted"
    assert [row["user_id"] for row in (await oss.get("/memories")).json()["results"]] == ["noah"]


@pytest.mark.parametrize(
    "query",
    [
        {"agent_id": "bot", "user_id": ""},
        {"agent_id": "bot", "user": "noor"},
        {"agent_id": "bot", "colour": "red"},
        {"agent_id": "bot", "dry_run": "true"},
        {"filters": '{"agent_id": "bot"}'},
    ],
)
async def test_a_delete_whose_query_is_not_understood_deletes_nothing(
    oss: httpx.AsyncClient, query: dict[str, str]
) -> None:
    await added(oss, "I like tea.", agent_id="bot")
    refused = await oss.delete("/memories", params=query)
    assert (refused.status_code, bool(error_of(refused))) == (400, True)
    assert len((await oss.get("/memories", params=MAYA)).json()["results"]) == 1


@pytest.mark.parametrize(
    "query", [{"app_id": "web"}, {"metadata": '{"trip": "oslo"}'}, {"agent_id": ["bot", "robot"]}]
)
async def test_further_conditions_narrow_a_delete(oss: httpx.AsyncClient, query: Any) -> None:
    await added(oss, "I like tea.", agent_id="bot", metadata={"trip": "oslo"}, app_id="web")
    await added(oss, "I live in Berlin.")
    assert (await oss.delete("/memories", params=MAYA | query)).status_code == 200
    [row] = (await oss.get("/memories", params=MAYA)).json()["results"]
    assert "Berlin" in row["memory"]


async def test_a_reset_requires_a_confirmation_in_a_header(oss: httpx.AsyncClient) -> None:
    await added(oss, "I live in Berlin.")
    refused = await oss.post("/reset")
    assert refused.status_code == 400
    assert "X-Memlane-Confirm: reset" in error_of(refused)
    assert len((await oss.get("/memories")).json()["results"]) == 1
    answer = await oss.post("/reset", headers={"X-Memlane-Confirm": "reset"})
    assert answer.json()["message"] == "All memories reset"
    assert (await oss.get("/memories")).json() == {"results": []}
    assert (await oss.get("/entities")).json() == []


async def test_unknown_keys_of_a_filter_are_those_of_the_metadata(oss: httpx.AsyncClient) -> None:
    await added(oss, "I live in Berlin.", metadata={"app_id": "shop", "branch": "main"})
    await added(oss, "I like tea.", app_id="bar")

    async def texts(**filters: object) -> list[str]:
        body = {"query": "What is known?", "filters": MAYA | filters, "threshold": 0.0}
        answer = await oss.post("/search", json=body)
        assert answer.status_code == 200, answer.text
        return sorted(row["memory"] for row in answer.json()["results"])

    home, drink = "User lives in Berlin", "User likes tea"
    assert await texts(app_id="shop") == [home]
    assert await texts(app_id="shop", branch="main") == [home]
    assert await texts(app_id="shop", branch="other") == []
    assert await texts(app_id="bar") == [drink]
    assert await texts(app_id="*") == [drink, home]
    assert await texts(OR=[{"branch": "main"}, {"app_id": "bar"}]) == [drink, home]


async def test_unknown_keys_below_a_not_are_those_of_the_metadata(oss: httpx.AsyncClient) -> None:
    await added(oss, "I live in Berlin.", metadata={"branch": "main"})
    for branch, number in {"main": 0, "other": 1}.items():
        body = {"query": "Berlin", "filters": MAYA | {"NOT": {"branch": branch}}}
        answer = await oss.post("/search", json=body)
        assert (answer.status_code, len(answer.json()["results"])) == (200, number), answer.text
