"""The projector writes every scheduled id, also after errors, and lets none wait for two rounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID, uuid4

import pytest

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.vector_index import projector as module
from pipeline.vector_index.index import A_PIECE, VectorIndex
from pipeline.vector_index.projector import TIMES, Projector, next_time
from tests.support.stack import wait_until

WITHIN_S = 10.0
# Years: a projector that waits for it is never in time.
GATHER_S = 1e9
SCOPE = Scope(ProjectId(uuid4()), user_id="maya")
OTHER = Scope(SCOPE.project_id, user_id="tom")


class Index:
    """Index with one collection for each user, which fails while `fails` says so."""

    def __init__(self) -> None:
        self.calls = 0
        self.tried: list[UUID] = []
        self.written: set[UUID] = set()
        self.fails: Callable[[UUID], Exception | None] = lambda _: None
        self.open = asyncio.Event()
        self.open.set()

    def collection(self, scope: Scope) -> str:
        return str(scope.user_id)

    async def catch_up(self, ids: Iterable[UUID]) -> int:
        self.calls += 1
        for key in ids:
            self.tried.append(key)
            if (error := self.fails(key)) is not None:
                raise error
        await self.open.wait()
        self.written.update(ids)
        return len(list(ids))


def projector_of(index: Index, *, gather_s: float = 0.0, retry_s: float = 0.0) -> Projector:
    return Projector(cast("VectorIndex", index), gather_s=gather_s, retry_s=retry_s)


@asynccontextmanager
async def running(projector: Projector) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(projector.run())
    yield task
    task.cancel()


async def until_written(index: Index, ids: Iterable[UUID]) -> None:
    async def written() -> bool:
        return set(ids) <= index.written

    await wait_until(written, within_s=WITHIN_S, what="the projector has written the ids")


async def test_a_projector_survives_an_unexpected_error() -> None:
    index, broken = Index(), uuid4()
    index.fails = lambda key: ValueError() if key == broken else None
    projector, later = projector_of(index), [uuid4()]
    projector.schedule(SCOPE, [broken])
    async with running(projector) as task:

        async def tried() -> bool:
            return broken in index.tried

        await wait_until(tried, within_s=WITHIN_S, what="the first try")
        projector.schedule(SCOPE, later)
        await until_written(index, later)
        assert not task.done()


async def test_ids_are_written_again_after_the_store_has_failed_once() -> None:
    index, ids = Index(), [uuid4() for _ in range(3 * A_PIECE)]
    failures = iter([StoreUnavailable("once")])
    index.fails = lambda _: next(failures, None)
    projector = projector_of(index)
    projector.schedule(SCOPE, ids)
    async with running(projector):
        await until_written(index, ids)


async def test_a_collection_that_always_fails_does_not_stop_the_others() -> None:
    bad, good = [[uuid4() for _ in range(2 * A_PIECE)] for _ in range(2)]
    index = Index()
    index.fails = lambda key: StoreUnavailable("always") if key in bad else None
    projector = projector_of(index)
    projector.schedule(Scope(SCOPE.project_id, user_id="first"), bad)
    projector.schedule(SCOPE, good)
    async with running(projector):
        await until_written(index, good)
    assert index.written.isdisjoint(bad)


async def test_ids_of_several_collections_are_written_together() -> None:
    index, ids = Index(), [uuid4() for _ in range(A_PIECE)]
    projector = projector_of(index)
    for number, key in enumerate(ids):
        projector.schedule(Scope(SCOPE.project_id, user_id=f"user-{number}"), [key])
    async with running(projector):
        await until_written(index, ids)
    assert index.calls == 1


async def test_a_full_collection_is_written_before_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FULL", 3)
    index, ids, other = Index(), [uuid4() for _ in range(3)], uuid4()
    projector = projector_of(index, gather_s=GATHER_S)
    projector.schedule(OTHER, [other])
    async with running(projector):
        for key in ids:
            projector.schedule(SCOPE, [key])
        await until_written(index, ids)
        assert other not in index.written
        projector.schedule(OTHER, [uuid4(), uuid4()])
        await until_written(index, [other])


async def test_ids_wait_after_an_error_even_if_a_collection_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FULL", 1)
    index, first, second = Index(), uuid4(), uuid4()
    index.fails = lambda _: StoreUnavailable("down")
    projector = projector_of(index, retry_s=GATHER_S)
    projector.schedule(SCOPE, [first])
    async with running(projector):

        async def tried() -> bool:
            return first in index.tried

        await wait_until(tried, within_s=WITHIN_S, what="the first try")
        projector.schedule(SCOPE, [second])
        for _ in range(10):  # enough turns of the loop for a round
            await asyncio.sleep(0)
    assert index.tried == [first]


async def test_a_long_outage_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 0)
    index, lost, first, later = Index(), uuid4(), uuid4(), uuid4()
    projector = projector_of(index)

    def fails(key: UUID) -> Exception | None:
        if key != lost:
            return None
        projector.schedule(SCOPE, [first])  # arrives during the failed round
        return StoreUnavailable("down")

    index.fails = fails
    projector.schedule(SCOPE, [lost])
    async with running(projector):
        await until_written(index, [first])
        projector.schedule(SCOPE, [later])
        await until_written(index, [later])
    assert index.tried.count(lost) == 1


async def test_a_collection_gathers_ids_until_its_time() -> None:
    index, ids = Index(), [uuid4() for _ in range(3)]
    projector = projector_of(index, gather_s=0.05)
    for key in ids:
        projector.schedule(SCOPE, [key])
    async with running(projector):
        await until_written(index, ids)
    assert index.calls == 1


async def test_an_earlier_collection_does_not_wait_for_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delays = {OTHER.user_id: GATHER_S, SCOPE.user_id: 0.0}
    monkeypatch.setattr(module, "next_time", lambda name, now, _: now + delays[name])
    index, later, earlier = Index(), uuid4(), uuid4()
    projector = projector_of(index, gather_s=GATHER_S)
    projector.schedule(OTHER, [later])
    async with running(projector):
        await asyncio.sleep(0)  # it waits for the later one
        projector.schedule(SCOPE, [earlier])
        await until_written(index, [earlier])
    assert later not in index.written


def test_collections_are_written_at_different_times_within_the_time_for_gathering() -> None:
    now, gather_s = 1_234.5, 20.0
    times = [next_time(f"collection-{number}", now, gather_s) for number in range(64)]
    assert all(now < time <= now + gather_s for time in times)
    slots = Counter(round((time - now) * TIMES / gather_s) for time in times)
    assert len(slots) > TIMES / 2
    assert max(slots.values()) < len(times) / 4


def test_a_collection_keeps_its_time() -> None:
    first = next_time("memories", 100.0, 20.0)
    assert next_time("memories", first - 1.0, 20.0) == pytest.approx(first)
    assert next_time("memories", first, 20.0) == pytest.approx(first + 20.0)
