"""Decay of memories, and their accesses, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from api.access_log import AccessLog
from pipeline.domain.decay import FULL_USE, LEAST, NEW
from pipeline.ledger.tables import memory_accesses, projects
from tests.support.api_service import MAYA, SEARCH, Service, serving
from tests.support.engine import Engine
from tests.support.stack import wait_until

OLD, NEWER = "User likes green tea", "User likes black tea"
YEARS_AGO = 1_500_000_000


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger, workers=True) as built:
        built.app.state.api = replace(
            built.api, accesses=AccessLog(engine.ledger.accesses, every_s=0.01)
        )
        yield built


async def decay(service: Service, setting: object) -> None:
    project = service.engine.project
    path = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    answer = await service.client.patch(path, json={"decay": setting})
    assert answer.status_code == 200, answer.text


async def search(service: Service, query: str = "tea", **options: object) -> list[dict[str, Any]]:
    body = {"query": query, "filters": MAYA, "threshold": 0} | options
    answer = await service.client.post(SEARCH, json=body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def accesses(service: Service) -> dict[str, int]:
    query = select(memory_accesses.c.memory_id, memory_accesses.c.accesses)
    async with service.engine.ledger.engine.connect() as connection:
        return {str(id_): count for id_, count in await connection.execute(query)}


async def store(service: Service) -> None:
    await service.add(OLD, infer=False, timestamp=YEARS_AGO)
    await service.add(NEWER, infer=False)


async def test_without_the_setting_nothing_decays_and_nothing_is_counted(service: Service) -> None:
    await store(service)
    rows = await search(service)
    assert not any("decay" in row["score_breakdown"] for row in rows)
    await service.api.accesses.write()
    assert await accesses(service) == {}


async def test_old_memories_rank_lower_and_the_factor_is_explained(service: Service) -> None:
    await store(service)
    before = {row["memory"]: row["score"] for row in await search(service, "likes green tea")}
    await decay(service, setting=True)
    after = {row["memory"]: row for row in await search(service, "likes green tea")}
    assert after[OLD]["score_breakdown"]["decay"] == pytest.approx(LEAST, abs=0.01)
    assert after[NEWER]["score_breakdown"]["decay"] == pytest.approx(NEW, abs=0.01)
    assert after[OLD]["score"] < before[OLD]
    assert list(after) == [NEWER, OLD]
    shares = after[OLD]["score_breakdown"]["terms"]
    assert sum(shares.values()) == pytest.approx(after[OLD]["score"], abs=0.001)


async def test_searches_are_counted_after_the_response_and_raise_what_they_return(
    service: Service,
) -> None:
    await store(service)
    await decay(service, {"half_life_days": 60})
    rows = await search(service, "green", keyword_search=True, threshold=0.99)
    assert [row["memory"] for row in rows] == [OLD]

    async def is_written() -> bool:
        return await accesses(service) == {rows[0]["id"]: 1}

    await wait_until(is_written, within_s=60, what="the access is written")
    await service.engine.ledger.accesses.add({UUID(rows[0]["id"]): FULL_USE})
    raised = {row["memory"]: row["score_breakdown"]["decay"] for row in await search(service)}
    assert raised[OLD] == pytest.approx(1.5, abs=0.01)


async def test_deleted_memories_are_not_counted_and_lose_their_counts(service: Service) -> None:
    await store(service)
    await decay(service, setting=True)
    ids = [row["id"] for row in await search(service)]
    await service.api.accesses.write()
    assert set(await accesses(service)) == set(ids)
    assert (await service.client.delete(f"/v1/memories/{ids[0]}/")).status_code == 200
    await service.engine.ledger.accesses.add({UUID(ids[0]): 1, uuid4(): 1, UUID(ids[1]): 1})
    assert (await accesses(service)).get(ids[1]) == 2


async def test_counts_of_several_processes_add_up(service: Service) -> None:
    await store(service)
    ids = [UUID(row["id"]) for row in await search(service)]
    ledger = service.engine.ledger
    orders = (dict.fromkeys(ids, 1), dict.fromkeys(reversed(ids), 2))
    await asyncio.gather(*(ledger.accesses.add(counts) for counts in orders * 10))
    assert await accesses(service) == {str(id_): 30 for id_ in ids}


async def test_accesses_of_another_project_are_not_read(service: Service) -> None:
    await store(service)
    ids = [UUID(row["id"]) for row in await search(service)]
    ledger = service.engine.ledger
    await ledger.accesses.add(dict.fromkeys(ids, 1))
    assert set(await ledger.accesses.of(service.engine.project.id, ids)) == set(ids)
    stranger, _ = await ledger.projects.create("another")
    assert await ledger.accesses.of(stranger.id, ids) == {}


async def test_the_setting_is_checked_and_read_back(service: Service) -> None:
    await decay(service, {"half_life_days": 7})
    query = select(projects.c.settings["decay"]).where(projects.c.id == service.engine.project.id)
    async with service.engine.ledger.engine.connect() as connection:
        assert await connection.scalar(query) == {"half_life_days": 7}
    project = service.engine.project
    path = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    for wrong in ({"half_life_days": 0}, {"half_life_days": "soon"}, {}, {"days": 3}):
        assert (await service.client.patch(path, json={"decay": wrong})).status_code == 400
