"""Responses of limited size: pages show excerpts, and say so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.search import responses as search_responses
from pipeline.events import store
from pipeline.memories import history
from pipeline.stores import Ledger
from tests.support.api_service import ADD, MAYA, Service, serving

LONG = "Tea. " * 1_000


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger, workers=True) as built:
        yield built


async def verbatim(service: Service, *texts: str, **body: object) -> str:
    turns = [{"role": "user", "content": text} for text in texts]
    sent = MAYA | {"messages": turns, "infer": False} | body
    answer = await service.client.post(ADD, json=sent)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["event_id"])


async def test_a_page_of_events_shows_excerpts_and_the_event_is_whole(service: Service) -> None:
    event_id = await verbatim(service, *(f"{n}. {LONG}" for n in range(15)))
    [listed] = (await service.client.get("/v1/events/")).json()["results"]
    whole = await service.event(event_id)
    assert listed["truncated"]
    assert not whole["truncated"]
    assert all(len(message["content"]) == 1_000 for message in listed["payload"]["messages"])
    assert 1 <= len(listed["payload"]["messages"]) <= 5
    assert all(len(line["memory"]) <= 1_000 for line in listed["results"])
    assert [message["content"] for message in whole["payload"]["messages"]] == [
        f"{n}. {LONG}" for n in range(15)
    ]
    assert len(whole["results"]) == 15
    assert listed["results"][0]["id"] == whole["results"][0]["id"]


async def test_a_page_shows_the_first_of_many_short_lines_of_an_event(service: Service) -> None:
    event_id = await verbatim(service, *(f"{n}" for n in range(250)))
    [listed] = (await service.client.get("/v1/events/")).json()["results"]
    whole = await service.event(event_id)
    assert listed["truncated"]
    assert not whole["truncated"]
    assert 100 < len(listed["results"]) <= 200
    assert 100 < len(listed["payload"]["messages"]) <= 200
    assert listed["results"] == whole["results"][: len(listed["results"])]
    assert len(whole["results"]) == 250


async def test_ordinary_events_are_whole_on_a_page(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "INLINE_ROWS", 0)  # built beside the event loop
    await verbatim(service, *(f"Note {n}" for n in range(30)), metadata={"trip": "Bern"})
    await verbatim(service, "One more")
    newest, oldest = (await service.client.get("/v1/events/")).json()["results"]
    assert [message["content"] for message in newest["payload"]["messages"]] == ["One more"]
    texts = [message["content"] for message in oldest["payload"]["messages"]]
    assert texts == [f"Note {n}" for n in range(30)]
    assert [line["memory"] for line in oldest["results"]] == texts
    assert oldest["metadata"] == {"trip": "Bern"}
    assert not newest["truncated"]
    assert not oldest["truncated"]


async def test_large_options_are_left_out_of_a_page(service: Service) -> None:
    event_id = await verbatim(service, "One", metadata={"k": "x" * 9_000})
    [listed] = (await service.client.get("/v1/events/")).json()["results"]
    assert listed["truncated"]
    assert listed["payload"]["options"] == {}
    assert (await service.event(event_id))["metadata"] == {"k": "x" * 9_000}


async def test_the_feed_of_changes_shows_excerpts_and_a_memorys_history_does_not(
    service: Service,
) -> None:
    await verbatim(service, LONG)
    [change] = (await service.client.get("/v1/memories/events/")).json()["results"]
    assert len(change["new_memory"]) == len(change["input"][0]["content"]) == 1_000
    [state] = (await service.client.get(f"/v1/memories/{change['memory_id']}/history/")).json()
    assert state["new_memory"].strip() == LONG.strip()


async def test_of_a_large_history_the_newest_states_are_answered(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await verbatim(service, "Version 1")
    [memory] = await service.listed()
    for n in range(2, 7):
        changed = await service.client.put(
            f"/v1/memories/{memory['id']}/", json={"text": f"Version {n}"}
        )
        assert changed.status_code == 200
    url = f"/v1/memories/{memory['id']}/history/"
    assert len((await service.client.get(url)).json()) == 6
    monkeypatch.setattr(history, "LARGEST_BYTES", 40)
    newest = (await service.client.get(url)).json()
    assert [state["new_memory"] for state in newest] == ["Version 5", "Version 6"]


async def test_a_search_answers_the_best_that_fit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await verbatim(service, *(f"Maya likes tea number {n}" for n in range(5)))
    query = {"query": "tea", "filters": MAYA, "threshold": 0, "keyword_search": True}
    whole = (await service.client.post("/v3/memories/search/", json=query)).json()
    assert len(whole["results"]) == 5
    assert "truncated" not in whole
    monkeypatch.setattr(search_responses, "LONGEST_ANSWER", 2 * (search_responses.AROUND_TEXT + 40))
    cut = (await service.client.post("/v3/memories/search/", json=query)).json()
    assert cut["results"] == whole["results"][:2]
    assert cut["truncated"]
    monkeypatch.setattr(search_responses, "LONGEST_ANSWER", 1)
    least = (await service.client.post("/v3/memories/search/", json=query)).json()
    assert len(least["results"]) == 1
