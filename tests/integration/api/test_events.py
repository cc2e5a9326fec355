"""Events over HTTP: list, read, wait for the end."""

from __future__ import annotations

import asyncio

from tests.support.api_service import ADD, LIVES, Service


async def test_events_are_listed_newest_first_and_filtered(service: Service) -> None:
    done = await service.add("I like jazz.")
    answer = await service.client.post(ADD, json=LIVES | {"user_id": "jon"})
    waiting = answer.json()["event_id"]

    async def ids(query: str = "") -> list[str]:
        answer = await service.client.get(f"/v1/events/{query}")
        assert answer.status_code == 200, answer.text
        return [event["id"] for event in answer.json()["results"]]

    assert await ids() == [waiting, done]
    assert await ids("?status=PENDING") == [waiting]
    assert await ids("?status=succeeded") == [done]
    assert await ids("?status=FAILED") == []
    assert await ids("?user_id=jon") == [waiting]
    assert await ids("?event_type=add") == [waiting, done]
    assert await ids("?event_type=DELETE") == []
    assert await ids("?start_date=2020-01-01&end_date=2999-01-01") == [waiting, done]
    assert await ids("?start_date=2999-01-01") == []
    assert await ids("?page=2&page_size=1") == [done]


async def test_both_names_of_the_event_route_give_the_same(service: Service) -> None:
    event_id = await service.add("I like jazz.")
    plural = await service.client.get(f"/v1/events/{event_id}/")
    assert plural.json() == await service.event(event_id)


async def test_asking_may_wait_for_the_end(service: Service) -> None:
    accepted = (await service.client.post(ADD, json=LIVES)).json()
    path = f"/v1/event/{accepted['event_id']}/"
    answer, _ = await asyncio.gather(service.client.get(f"{path}?wait=30"), service.engine.drain())
    assert answer.json()["status"] == "SUCCEEDED"
    assert (await service.client.get(f"{path}?wait=30")).json() == answer.json()


async def test_waiting_ends_with_the_time_given(service: Service) -> None:
    accepted = (await service.client.post(ADD, json=LIVES)).json()
    answer = await service.client.get(f"/v1/event/{accepted['event_id']}/?wait=0.01")
    assert answer.json()["status"] == "PENDING"
