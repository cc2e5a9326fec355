"""The Compose file as it is, run by Compose: a turn, a killed worker, and a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.composed import Composed, missing_images
from tests.support.containers import docker
from tests.support.stack import Client


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


def test_no_container_but_the_api_publishes_a_port(composed: Composed) -> None:
    published = {
        service: docker("port", container).stdout.strip()
        for service in ("postgres", "valkey", "chroma", "worker", "sweeper", "api")
        for container in composed.containers(service)
    }
    assert published.pop("api") == f"8000/tcp -> 127.0.0.1:{composed.port}"
    assert set(published.values()) == {""}
