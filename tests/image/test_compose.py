"""The Compose file as it is, run by Compose: a turn, a killed worker, restarts of all services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.support.composed import Composed, missing_images
from tests.support.containers import docker
from tests.support.stack import Client, wait_until


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    if missing := missing_images():
        pytest.skip(f"neither here nor in a registry in reach: {', '.join(missing)}")
    with Composed(tmp_path_factory.mktemp("compose")) as running:
        yield running


@pytest.fixture
async def client(composed: Composed) -> AsyncIterator[Client]:
    async with Client(composed) as made:
        yield made


async def test_a_turn_is_added_and_found_also_after_a_restart(
    composed: Composed, client: Client
) -> None:
    event = await client.ended(await client.add("maya", "I moved to Porto."))
    assert event["status"] == "SUCCEEDED"
    composed.run("stop")
    composed.run("start")
    composed.ready()
    hits = (await client.search("maya", "Where does Maya live?"))["results"]
    assert [hit["memory"] for hit in hits] == ["User lives in Porto"]


async def test_a_killed_worker_loses_nothing(composed: Composed, client: Client) -> None:
    workers = composed.containers("worker")
    assert len(workers) == 2
    ids = [await client.add(f"user-{n}", f"I have {n} cats.") for n in range(20)]
    docker("kill", workers[0])
    ends = await client.all_ended(ids, within_s=120)
    assert [event["status"] for event in ends] == ["SUCCEEDED"] * 20


@pytest.mark.parametrize("service", ["postgres", "valkey", "chroma", "api", "worker", "sweeper"])
async def test_a_restart_of_any_service_among_adds_loses_and_doubles_nothing(
    composed: Composed, client: Client, service: str
) -> None:
    restart = asyncio.create_task(asyncio.to_thread(composed.run, "restart", service))
    ids: list[str] = []
    while not restart.done() or not ids:
        ids.append(await accepted(client, f"{service}-{len(ids)}"))
    await restart
    await asyncio.to_thread(composed.ready)
    ends = await client.all_ended(ids, within_s=120)
    assert {event["status"] for event in ends} == {"SUCCEEDED"}
    assert len(set(ids)) == len(ids)
    for user_id in (f"{service}-0", f"{service}-{len(ids) - 1}"):
        assert len(await client.memories(user_id)) == 1


async def accepted(client: Client, user_id: str) -> str:
    """The event of an add that is repeated with its key, as clients do, until it is accepted."""
    events: list[str] = []

    async def is_accepted() -> bool:
        try:
            answer = await client.http.post(
                "/v3/memories/add/",
                json={"messages": "I own a boat.", "user_id": user_id},
                headers={"Idempotency-Key": user_id},
            )
        except httpx.TransportError:  # the API's container is down
            return False
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 503:
            assert int(answer.headers["Retry-After"]) > 0
            return False
        events.append(str(answer.json()["event_id"]))
        return True

    await wait_until(is_accepted, within_s=120, what=f"an accepted add of {user_id}", every_s=0.2)
    return events[0]


def test_no_container_but_the_api_publishes_a_port(composed: Composed) -> None:
    published = {
        service: docker("port", container).stdout.strip()
        for service in ("postgres", "valkey", "chroma", "worker", "sweeper", "api")
        for container in composed.containers(service)
    }
    assert published.pop("api") == f"8000/tcp -> 127.0.0.1:{composed.port}"
    assert set(published.values()) == {""}
