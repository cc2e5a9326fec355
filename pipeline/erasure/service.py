"""Erasure: delete a user, agent, app or run from all stores, with a receipt of the counts.

    erase ──► one commit: its rows leave the ledger, the fences of its lanes are raised
    finish ──► its vectors leave the index, its relations the graph server; the event is SUCCEEDED
           ──► and once more a minute later, for a vector write that was under way

Everything accepted before is deleted, whether done, running or waiting; adds accepted later start
from an empty scope. Messages in the broker carry only ids of lanes, so there is nothing to erase.
"""

from __future__ import annotations

from uuid import UUID

import structlog

from pipeline.domain.tenants import OrganizationId, ProjectId
from pipeline.erasure.store import Erasures, OwnerKey
from pipeline.graph.mirror import Mirroring
from pipeline.tenants.delete_project import Removal
from pipeline.tenants.private_runs import PrivateRuns
from pipeline.tenants.projects import Project
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

# Number of expired runs erased in one pass.
AT_ONCE = 20


async def erase(project_id: ProjectId, owner: OwnerKey, *, erasures: Erasures) -> UUID:
    """Erase every scope with this id. Returns the event's id; vectors are deleted within seconds.

    Erasing an id without any data is no error: all counts of the receipt are zero.
    """
    event_id = await erasures.erase(project_id, owner)
    log.info("erased", event_id=str(event_id), kind=owner.kind)
    return event_id


async def end_expired(*, runs: PrivateRuns, erasures: Erasures) -> int:
    """Erase the temporary runs whose time is over. Returns their number.

    Safe to run in any number of processes and to repeat at any point.
    """
    expired = await runs.claim_expired(limit=AT_ONCE)
    for project_id, run_id in expired:
        await erase(project_id, OwnerKey("run", run_id), erasures=erasures)
    return len(expired)


async def remove(project: Project, *, removal: Removal, index: VectorIndex) -> None:
    """Delete an empty project with its vectors. Safe to repeat after a failure at any point.

    Errors: Conflict while it is not empty; StoreUnavailable if its vectors cannot be deleted.
    """
    await index.drop(await index.holding(await removal.forget(project)))
    await removal.remove(project)


async def remove_organization(
    organization_id: OrganizationId, *, removal: Removal, index: VectorIndex
) -> None:
    """Delete an organization whose projects are all empty. Safe to repeat after any failure.

    Errors: as `remove`.
    """
    await index.drop(await index.holding(await removal.forget_organization(organization_id)))
    await removal.remove_organization(organization_id)


async def finish(
    *, erasures: Erasures, index: VectorIndex, mirroring: Mirroring | None = None
) -> int:
    """Delete the vectors of erased owners from the index, and their relations from a graph server.

    Returns the number of erasures processed.

    Safe to run in any number of processes and to repeat at any point. Errors: StoreUnavailable; the
    erasures that were not processed stay due.
    """
    done = 0
    while (erasure := await erasures.claim()) is not None:
        vectors = await index.holding(erasure.memory_ids)
        if erasure.vectors is None:
            await erasures.record_vectors(erasure.event_id, sum(map(len, vectors.values())))
        await index.drop(vectors)
        if mirroring is not None:
            await mirroring.settle()
        await erasures.end(erasure.event_id)
        done += 1
    return done
