"""Contract of the tables whose rows are mirrored into the vector index: memories and turns."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from pipeline.domain.vectors import to_bytes
from pipeline.vector_index.projections import VectorSource
from tests.support.engine import Engine

FIRST = UUID(int=0)
INDEX = "memory/memories-fake-hash-of4"


@pytest.fixture(params=["memory_vectors", "turn_vectors"])
async def source(engine: Engine, request: pytest.FixtureRequest) -> VectorSource:
    """Three texts of two users, each with a vector in the ledger; the index holds none of them."""
    await engine.ledger.indexes.adopt(INDEX)
    for text, user_id in (("I like jazz.", "maya"), ("I own a boat.", "maya"), ("I ski.", "jon")):
        await engine.add(text, user_id=user_id)
        await engine.drain()
    vector_source: VectorSource = getattr(engine.ledger, request.param)
    stale = await vector_source.unprojected(stale_for_s=0, limit=10)
    await vector_source.fitted(
        await engine.services.index.of(vector_source).fitting(stale), "fake/hash"
    )
    return vector_source


async def test_pending_rows_come_oldest_first_and_within_the_limit(
    source: VectorSource,
) -> None:
    stale = await source.unprojected(stale_for_s=0, limit=10)
    assert [projection.scope.user_id for projection in stale] == ["maya", "maya", "jon"]
    assert await source.count() == 3
    assert await source.unprojected(stale_for_s=0, limit=2) == stale[:2]
    assert await source.unprojected(stale_for_s=60, limit=10) == []
    assert await source.unprojected([], stale_for_s=0, limit=10) == []


async def test_a_written_row_is_no_longer_pending(source: VectorSource) -> None:
    first, *rest = await source.unprojected(stale_for_s=0, limit=10)
    assert await source.projected([first], index=INDEX) == []
    assert await source.unprojected(stale_for_s=0, limit=10) == rest


async def test_a_row_with_a_newer_version_stays_pending(source: VectorSource) -> None:
    stale = await source.unprojected(stale_for_s=0, limit=10)
    await source.projected(stale, index=INDEX)
    await source.projected([replace(stale[0], version=stale[0].version + 1)], index=INDEX)
    assert await source.unprojected(stale_for_s=0, limit=10) == [stale[0]]


async def test_a_write_records_nothing_once_a_late_one_has_marked_the_row(
    source: VectorSource,
) -> None:
    first, *rest = await source.unprojected(stale_for_s=0, limit=10)
    # The end of a late write, of another version; which of the two the index has is unknown.
    await source.projected([replace(first, version=first.version + 1)], index=INDEX)
    await source.projected([first, *rest], index=INDEX)
    [again] = await source.unprojected(stale_for_s=0, limit=10)
    assert again == first
    await source.projected([again], index=INDEX)
    assert await source.unprojected(stale_for_s=0, limit=10) == []


async def test_a_write_whose_end_is_unknown_marks_its_row(source: VectorSource) -> None:
    stale = await source.unprojected(stale_for_s=0, limit=10)
    await source.projected(stale, index=INDEX)
    await source.projected([replace(stale[0], version=0)], index=INDEX)
    assert await source.unprojected(stale_for_s=0, limit=10) == [stale[0]]


async def test_an_index_that_is_not_served_settles_no_debt(source: VectorSource) -> None:
    stale = await source.unprojected(stale_for_s=0, limit=10)
    await source.projected(stale, index="memory/another")
    assert await source.unprojected(stale_for_s=0, limit=10) == stale


async def test_rows_erased_during_the_write_are_reported(source: VectorSource) -> None:
    stale = await source.unprojected(stale_for_s=0, limit=10)
    gone = replace(stale[0], id=UUID(int=7))
    assert await source.projected([gone, *stale[1:]], index=INDEX) == [gone.id]


async def test_pending_vectors_are_those_of_the_given_ids_and_embedder(
    source: VectorSource, engine: Engine
) -> None:
    where = {"project_id": str(engine.project.id), "user_id": "maya"}
    hers = await source.stale_vectors(where, embedder="fake/hash", limit=10)
    known = {
        projection.id: projection.vector
        for projection in await source.unprojected(stale_for_s=0, limit=10)
    }
    assert dict(hers) == {key: to_bytes(known[key]) for key, _ in hers}
    assert len(hers) == 2
    assert len(await source.stale_vectors(where, embedder="fake/hash", limit=1)) == 1
    assert await source.stale_vectors(where, embedder="fake/another", limit=10) == []


async def test_everything_is_gone_through_by_id(source: VectorSource) -> None:
    for page in (source.following, source.unbuilt):
        some = await page(FIRST, limit=2)
        rest = await page(some[-1].id, limit=2)
        ids = [projection.id for projection in (*some, *rest)]
        assert ids == sorted(ids)
        assert len(ids) == 3


async def test_vectors_of_another_model_are_foreign_once_they_are_pending(
    source: VectorSource,
) -> None:
    await source.projected(await source.unprojected(stale_for_s=0, limit=10), index=INDEX)
    assert await source.foreign(INDEX, "fake/another", limit=10) == []
    await source.mark_foreign_stale("fake/another")
    assert len(await source.foreign(INDEX, "fake/another", limit=10)) == 3
    assert await source.foreign(INDEX, "fake/hash", limit=10) == []
    assert await source.foreign("memory/another", "fake/another", limit=10) == []


async def test_the_rows_of_a_scope_come_page_by_page(source: VectorSource, engine: Engine) -> None:
    project_id, maya = engine.project.id, {"user_id": "maya"}
    pages = [page async for page in source.pages(project_id, maya, None, limit=1)]
    assert [row.text for rows, _ in pages for row in rows] == [
        row.text
        for row in await source.unprojected(stale_for_s=0, limit=10)
        if row.scope.user_id == "maya"
    ]
    (_, first), (rest, last) = pages
    assert [p async for p in source.pages(project_id, maya, first, limit=9)] == [(rest, last)]
    assert [p async for p in source.pages(project_id, maya, last, limit=9)] == []


async def test_a_scope_is_large_by_its_own_rows(source: VectorSource, engine: Engine) -> None:
    await engine.ledger.balance.fold()
    project_id = engine.project.id
    assert await source.has(project_id, {"user_id": "maya"}, rows=2)
    assert not await source.has(project_id, {"user_id": "maya"}, rows=3)
    assert not await source.has(project_id, {"user_id": "maya", "agent_id": "bot"}, rows=1)
