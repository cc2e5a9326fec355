"""Read by: a bounded sample of the searches that returned a memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text, update

from api.search.read_sample import MOST_SEARCHES, ReadSample, may_be_sampled
from pipeline.domain.filters import parse
from pipeline.events.retention import Retention
from pipeline.ledger.tables import memory_reads
from pipeline.memories.reads import LONGEST_QUESTION, MOST_OF_A_MEMORY, MemoryRead, SampledRead
from pipeline.stores import Ledger
from tests.support.api_service import Service, serving
from tests.support.console_client import browsing
from tests.support.explained import explaining


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def reads(service: Service, memory_id: str) -> list[MemoryRead]:
    await service.api.reads.write()
    project_id = service.engine.project.id
    return await service.engine.ledger.reads.of(project_id, UUID(memory_id))


async def test_a_search_is_shown_at_the_memories_that_it_returned(service: Service) -> None:
    await service.add("I live in Lima.", "I own a boat.")
    [hit, *_] = await service.search("Do I live in Lima?", top_k=5, threshold=0)
    [read] = await reads(service, hit["id"])
    assert (read.question, read.place) == ("Do I live in Lima?", 1)
    assert read.score == pytest.approx(hit["score"], abs=1e-4)
    async with browsing(service.app, service.key) as browser:
        page = await browser.shown(f"/console/memories/{hit['id']}")
        assert "Do I live in Lima?" in page
        await browser.shown("/console/search", q="Lima", user_id="maya")
    assert len(await reads(service, hit["id"])) == 1  # the search debugger does not count


@pytest.mark.parametrize(
    ("filters", "sampled"),
    [
        ({"user_id": "maya"}, True),
        ({"AND": [{"agent_id": "bot"}, {"metadata.x": 1}]}, True),
        ({"OR": [{"user_id": "maya"}, {"user_id": "jon"}]}, False),
        ({"user_id": "*"}, False),
        ({"user_id": "maya", "run_id": "private"}, False),
        ({"user_id": "maya", "run_id": ["private", "other"]}, False),
        ({"user_id": "maya", "OR": [{"run_id": "private"}, {"run_id": None}]}, False),
        ({"user_id": "maya", "run_id": None}, True),
        ({"user_id": "maya", "NOT": {"run_id": "private"}}, True),
    ],
)
def test_a_search_of_one_owner_without_a_run_may_be_sampled(
    filters: dict[str, object], *, sampled: bool
) -> None:
    assert may_be_sampled(parse(filters)) is sampled


async def test_a_memory_keeps_its_newest_reads(service: Service) -> None:
    await service.add("I live in Lima.")
    [memory] = await service.listed()
    identity = UUID(memory["id"])
    store = service.engine.ledger.reads
    for number in range(MOST_OF_A_MEMORY + 3):
        await store.add([SampledRead(identity, f"{number} {'w' * 999}", 1, 0.5)])
    rows = await reads(service, memory["id"])
    assert [int(read.question.split()[0]) for read in rows] == list(range(12, 2, -1))
    assert {len(read.question) for read in rows} == {LONGEST_QUESTION}


async def test_the_work_of_a_write_grows_with_its_reads(service: Service) -> None:
    """Each memory has all the reads that it keeps, so each write deletes as many as it adds."""
    boats = [f"I own boat number {number}." for number in range(40)]
    await service.add(*boats, infer=False)
    own = [UUID(memory["id"]) for memory in await service.listed()]
    store, engine = service.engine.ledger.reads, service.engine.ledger.engine
    batch = [SampledRead(memory_id, "Which boats?", 1, 0.5) for memory_id in own]
    for _ in range(MOST_OF_A_MEMORY):
        await store.add(batch)
    await engine.dispose()
    with explaining(engine) as recorder:
        await store.add(batch)
        plans = await recorder.taken()
    await engine.dispose()
    [plan] = [plan for plan in plans if "INSERT INTO memory_reads" in plan.words]
    assert len(boats) == len(own) == plan.returned
    assert plan.read <= 2 * MOST_OF_A_MEMORY * len(own), plan.node


class Counted:
    """A store that counts what it gets."""

    def __init__(self) -> None:
        self.reads: list[SampledRead] = []

    async def add(self, reads: list[SampledRead]) -> None:
        self.reads += reads


async def test_a_process_writes_a_limited_number_whatever_the_load() -> None:
    store = Counted()
    sample = ReadSample(store, every_s=3_600)  # type: ignore[arg-type]
    for number in range(1_000):
        sample.searched([SampledRead(UUID(int=number), "q", 1, 0.5)] * 50)
    await sample.close()
    assert len(store.reads) == MOST_SEARCHES * 10
    off = ReadSample(store, on=False)  # type: ignore[arg-type]
    off.searched([SampledRead(UUID(int=1), "q", 1, 0.5)])
    await off.close()
    assert len(store.reads) == MOST_SEARCHES * 10


async def test_old_reads_are_deleted(service: Service) -> None:
    await service.add("I live in Lima.")
    [hit, *_] = await service.search("Do I live in Lima?", top_k=5, threshold=0)
    assert await reads(service, hit["id"])
    engine, day = service.engine.ledger.engine, timedelta(days=1)
    retention = Retention(engine, keys_for=day, outputs_for=day, reads_for=day)
    assert await retention.forget_samples() == 0
    async with engine.begin() as connection:
        old = memory_reads.c.at - text("interval '2 days'")
        await connection.execute(update(memory_reads).values(at=old))
    assert await retention.forget_samples() == 1
    assert await reads(service, hit["id"]) == []
