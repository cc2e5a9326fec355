"""Deletion of a project that is refused or fails in the middle: nothing is hidden or lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update

from pipeline.domain.errors import Conflict, StoreUnavailable
from pipeline.erasure import service as erasure
from pipeline.ledger.tables import lanes, memories, projects, rebuilt, turn_vectors
from pipeline.tenants.delete_project import ProjectDeletion
from pipeline.vector_index.index import SoughtIds, VectorIndex
from tests.support.tenant import Tenant


class Between:
    """Index that fails between the steps of a deletion."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.dropped: list[UUID] = []

    async def holding(self, sought: SoughtIds) -> dict[str, list[UUID]]:
        with pytest.raises(Conflict, match="being deleted"):
            await self.tenant.service.engine.add("I like tea.")
        return {"all": list(sought.ids)}

    async def drop(self, by_collection: Mapping[str, Sequence[UUID]]) -> None:
        self.dropped = list(by_collection["all"])
        raise StoreUnavailable("no answer")


@pytest.fixture
async def emptied(tenant: Tenant) -> Tenant:
    """A tenant with a turn, no memory, and a lasting admin key for another project."""
    other = (await tenant.client.post(tenant.projects, json={"name": "other"})).json()
    await tenant.key(scope="admin", project_id=other["project_id"])
    await tenant.service.add("I live in Bern.")
    async with tenant.ledger.engine.begin() as connection:
        gone = {"state": "RETIRED", "version": memories.c.version + 1}
        await connection.execute(update(memories).values(gone))
        await connection.execute(update(memories).values(projected_version=memories.c.version))
    return tenant


async def removed(tenant: Tenant, index: Between) -> None:
    await erasure.remove(
        tenant.service.engine.project,
        deletion=tenant.ledger.project_deletion,
        index=cast("VectorIndex", index),
    )


async def test_a_deletion_that_fails_hides_nothing(emptied: Tenant) -> None:
    index = Between(emptied)
    with pytest.raises(StoreUnavailable):
        await removed(emptied, index)
    async with emptied.ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.max(lanes.c.forgotten_seq))) == 0
        stale = select(turn_vectors.c.id).where(turn_vectors.c.version > 1, turn_vectors.c.owed)
        assert list(await connection.scalars(stale)) == index.dropped != []
    await emptied.service.add("I like tea.")


async def test_a_deletion_whose_process_ended_refuses_adds_for_minutes_only(
    emptied: Tenant,
) -> None:
    engine = emptied.service.engine
    await emptied.ledger.project_deletion.begin(engine.project)
    with pytest.raises(Conflict):
        await engine.add("I like tea.")
    async with emptied.ledger.engine.begin() as connection:
        earlier = projects.c.deleting_at - text("interval '11 minutes'")
        await connection.execute(update(projects).values(deleting_at=earlier))
    await engine.add("I like tea.")


async def test_the_vectors_in_an_index_under_construction_are_deleted_too(
    emptied: Tenant,
) -> None:
    project, project_deletion = (
        emptied.service.engine.project,
        ProjectDeletion(emptied.ledger.engine),
    )
    async with emptied.ledger.engine.begin() as connection:
        [memory_id] = await connection.scalars(select(memories.c.id))
        row = {"memory_id": memory_id, "version": 1}
        await connection.execute(rebuilt.insert().values(row))
    assert memory_id in await project_deletion.begin(project)
    await project_deletion.remove(project)
    async with emptied.ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(rebuilt)) == 0
