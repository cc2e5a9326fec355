"""Contract of the server that users' tests run against, beside the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from memlane_client import AsyncMemlane, EventFailed, Missing, Rejected, Retries
from memlane_client.testing import FakeMemlane

from pipeline.stores import Ledger
from tests.support.api_service import serving


@dataclass
class Server:
    """A server, its client, and requests as they are."""

    memlane: AsyncMemlane
    http: httpx.AsyncClient


@pytest.fixture(params=["fake", "real"])
async def server(request: pytest.FixtureRequest, ledger: Ledger) -> AsyncIterator[Server]:
    if request.param == "fake":
        transport: httpx.AsyncBaseTransport = FakeMemlane().transport
        async with AsyncMemlane("key", async_transport=transport) as memlane:
            http = httpx.AsyncClient(transport=transport, base_url="http://memlane")
            yield Server(memlane, http)
        return
    async with serving(ledger, workers=True) as service:
        transport = httpx.ASGITransport(service.app)
        async with AsyncMemlane(service.key, async_transport=transport) as memlane:
            yield Server(memlane, service.client)


async def test_an_add_ends_with_a_receipt_and_is_found(server: Server) -> None:
    receipt = await (await server.memlane.add("I live in Porto.", user_id="maya")).receipt(30)
    assert receipt.status == "SUCCEEDED"
    [line] = receipt.results
    assert line.event == "ADD"
    assert line.message == 0
    answer = await server.memlane.search("Where in Porto?", user_id="maya")
    assert [hit.id for hit in answer.results] == [line.id]
    assert "Porto" in answer.results[0].memory
    assert 0 < answer.results[0].score <= 1


async def test_another_user_sees_nothing(server: Server) -> None:
    await (await server.memlane.add("I live in Porto.", user_id="maya")).receipt(30)
    assert (await server.memlane.search("Porto", user_id="noor")).results == []
    assert (await server.memlane.list({"user_id": "noor"})).results == []
    assert (await server.memlane.list({"user_id": "maya"})).count == 1


async def test_a_search_of_several_users_finds_the_memories_of_each(server: Server) -> None:
    for user in ("maya", "noor"):
        await (await server.memlane.add("I live in Porto.", user_id=user)).receipt(30)
    filters = {"OR": [{"user_id": "maya"}, {"user_id": "noor"}]}
    answer = await server.memlane.search("Who lives in Porto?", filters=filters)
    assert {hit.user_id for hit in answer.results} == {"maya", "noor"}


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        ({"user_id": "maya"}, "porto faro"),
        ({"user_id": {"eq": "maya"}}, "porto faro"),
        ({"user_id": {"in": ["maya", "noor"]}}, "porto faro bonn"),
        ({"user_id": ["noor"]}, "bonn"),
        ({"user_id": {"ne": "maya"}, "app_id": "*"}, "lima"),
        ({"user_id": "*", "app_id": None}, "porto faro bonn"),
        ({"OR": [{"user_id": "noor"}, {"app_id": "web"}]}, "bonn lima"),
        ({"AND": [{"user_id": "maya"}, {"NOT": [{"metadata": {"trip": "a"}}]}]}, "faro"),
        ({"user_id": "maya", "metadata.trip": "a"}, "porto"),
        ({"user_id": "maya", "NOT": {"metadata.trip": {"in": ["a", "c"]}}}, "faro"),
    ],
)
async def test_a_list_has_what_its_filter_matches(
    server: Server, filters: dict[str, Any], texts: str
) -> None:
    for text, fields in {
        "porto": {"user_id": "maya", "metadata": {"trip": "a"}},
        "faro": {"user_id": "maya", "metadata": {"trip": "b"}},
        "bonn": {"user_id": "noor"},
        "lima": {"app_id": "web"},
    }.items():
        ticket = await server.memlane.add(text, infer=False, **fields)  # type: ignore[arg-type]
        await ticket.receipt(30)
    page = await server.memlane.list(filters)
    assert [row.memory for row in page.results] == texts.split()[::-1]
    hits = (await server.memlane.search("porto faro bonn lima", filters=filters)).results
    assert {hit.memory for hit in hits} == set(texts.split())


async def test_lists_have_pages_and_a_search_has_ten_results(server: Server) -> None:
    texts = [f"porto {number}" for number in range(12)]
    for text in texts:
        await (await server.memlane.add(text, user_id="maya", infer=False)).receipt(30)
    mine = {"user_id": "maya"}
    pages = [await server.memlane.list(mine, page=number, size=5) for number in (1, 2, 3)]
    assert [row.memory for page in pages for row in page.results] == texts[::-1]
    assert [page.count for page in pages] == [12] * 3
    assert [page.next is not None for page in pages] == [True, True, False]
    with pytest.raises(Missing):
        await server.memlane.list(mine, page=4, size=5)
    for number, size in ((0, 5), (1, 0), (1, 201)):
        with pytest.raises(Rejected):
            await server.memlane.list(mine, page=number, size=size)
    assert len((await server.memlane.search("porto", user_id="maya")).results) == 10
    assert len((await server.memlane.search("porto", user_id="maya", top_k=11)).results) == 11


@pytest.mark.parametrize("filters", [{"user_id": "maya", "userid": "x"}, {"OR": {}}, {}])
async def test_a_filter_that_is_not_known_is_refused(
    server: Server, filters: dict[str, Any]
) -> None:
    with pytest.raises(Rejected):
        await server.memlane.list(filters)


async def test_the_fake_says_which_conditions_it_does_not_know() -> None:
    async with AsyncMemlane("key", async_transport=FakeMemlane().transport) as memlane:
        with pytest.raises(Rejected, match=r"FakeMemlane knows no condition created_at"):
            await memlane.list({"user_id": "maya", "created_at": {"gte": "2026-01-01"}})


async def test_one_key_is_one_add(server: Server) -> None:
    add = server.memlane.add
    first = await add("I live in Porto.", user_id="maya", idempotency_key="k")
    again = await add("I live in Porto.", user_id="maya", idempotency_key="k")
    assert await first.event_id() == await again.event_id()
    with pytest.raises(Rejected):
        await (await add("I live in Faro.", user_id="maya", idempotency_key="k")).event_id()


async def test_a_memory_is_read_changed_and_deleted(server: Server) -> None:
    receipt = await (await server.memlane.add("I live in Porto.", user_id="maya")).receipt(30)
    memory_id = receipt.results[0].id or ""
    await server.memlane.update(memory_id, text="User lives in Faro")
    assert (await server.memlane.get(memory_id)).memory == "User lives in Faro"
    await server.memlane.delete(memory_id)
    with pytest.raises(Missing):
        await server.memlane.get(memory_id)
    with pytest.raises(Missing):
        await server.memlane.delete(memory_id)


async def test_a_search_after_an_event_tells_that_it_has_ended(ledger: Ledger) -> None:
    async with (
        serving(ledger, workers=True) as service,
        AsyncMemlane(service.key, async_transport=httpx.ASGITransport(service.app)) as memlane,
    ):
        ticket = await memlane.add("I live in Porto.", user_id="maya")
        after = {"after_event": await ticket.event_id(), "wait": 30.0}
        answer = await memlane.search("Porto", user_id="maya", **after)  # type: ignore[arg-type]
    assert (answer.after_event_status, answer.after_event_ended) == ("SUCCEEDED", True)
    assert answer.event_status == answer.after_event_status
    assert len(answer.results) == 1


async def test_an_add_without_an_owner_is_refused(server: Server) -> None:
    body = {"messages": [{"role": "user", "content": "I live in Porto."}]}
    answer = await server.http.post("/v3/memories/add/", json=body)
    assert answer.status_code == 400
    assert "user_id" in answer.json()["error"]


async def test_the_fake_holds_fails_and_refuses_as_a_test_asks() -> None:
    fake = FakeMemlane()
    fast = Retries(first_s=0.0)
    async with AsyncMemlane("key", async_transport=fake.transport, retries=fast) as memlane:
        fake.hold()
        ticket = await memlane.add("I live in Porto.", user_id="maya")
        assert (await memlane.event(await ticket.event_id())).status == "PENDING"
        assert fake.memories == {}
        fake.release()
        assert (await ticket.receipt()).memories == ["I live in Porto."]
        fake.fail_next("LLM_UNAVAILABLE")
        failed = await memlane.add("I keep bees.", user_id="maya")
        with pytest.raises(EventFailed):
            await failed.receipt()
        fake.refuse_next(503)
        assert (await memlane.search("Porto", user_id="maya")).results  # tried again
    assert [add["user_id"] for add in fake.adds] == ["maya", "maya"]
