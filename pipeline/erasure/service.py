"""Erasure: delete a user, agent, app or run from all stores, with a receipt of the counts.

    erase ──► one commit: its rows leave the ledger, the fences of its lanes are raised
    finish ──► its vectors leave the index, its relations the graph server; the event is SUCCEEDED
           ──► and once more a minute later, for a vector write that was under way

Everything accepted before is deleted, whether done, running or waiting; adds accepted later start
from an empty scope. Messages in the broker carry only ids of lanes, so there is nothing to erase.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import UUID

import structlog

from pipeline.domain.errors import Conflict, StageError
from pipeline.domain.tenants import OrganizationId, ProjectId
from pipeline.erasure.store import Erasures, OwnerKey
from pipeline.graph.mirror import Mirroring
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.tenants.delete_project import ProjectDeletion
from pipeline.tenants.private_runs import PrivateRuns
from pipeline.tenants.projects import Project
from pipeline.vector_index.index import SoughtIds, VectorIndex

log = structlog.get_logger()

# Number of runs ended, and of erasures finished, in one step.
AT_ONCE = 50


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
    ended = 0
    for project_id, run_id in await runs.expired(limit=AT_ONCE):
        event_id = await erasures.end_run(project_id, run_id)
        if event_id is not None:
            log.info("session_ended", event_id=str(event_id))
            ended += 1
    return ended


async def remove(project: Project, *, deletion: ProjectDeletion, index: VectorIndex) -> None:
    """Delete an empty project with its vectors. Safe to repeat after a failure at any point.

    A deletion that fails changes nothing, except that vectors are written again.
    Errors: Conflict while it is not empty; StoreUnavailable if its vectors cannot be deleted.
    """
    ids = await deletion.begin(project)
    async with _kept_if_it_fails(partial(deletion.keep, project)):
        await index.drop(await index.holding(SoughtIds(ids)))
        await deletion.remove(project)


async def remove_organization(
    organization_id: OrganizationId, *, deletion: ProjectDeletion, index: VectorIndex
) -> None:
    """Delete an organization whose projects are all empty. Safe to repeat after any failure.

    Errors: as `remove`.
    """
    ids = await deletion.begin_organization(organization_id)
    async with _kept_if_it_fails(partial(deletion.keep_organization, organization_id)):
        await index.drop(await index.holding(SoughtIds(ids)))
        await deletion.remove_organization(organization_id)


@asynccontextmanager
async def _kept_if_it_fails(keep: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Call `keep` if the block fails; if that fails too, the mark ends by itself."""
    try:
        yield
    except (Conflict, StageError, LedgerUnavailable):
        with suppress(LedgerUnavailable):
            await keep()
        raise


async def finish(
    *,
    erasures: Erasures,
    index: VectorIndex,
    mirroring: Mirroring | None = None,
    of_sessions: bool = False,
) -> int:
    """Delete the vectors of erased owners from the index, and their relations from a graph server.

    `of_sessions`: of ended sessions; else of requested erasures. Returns the number of erasures
    processed.

    Safe to run in any number of processes and to repeat at any point. Errors: StoreUnavailable; the
    erasures that were not processed stay due.
    """
    done = 0
    while claimed := await erasures.claim(of_sessions=of_sessions, limit=AT_ONCE):
        await erasures.fold_books()
        vectors = await index.holding(
            *(SoughtIds(erasure.memory_ids, erasure.owner_hashes) for erasure in claimed)
        )
        stored = {key for ids in vectors.values() for key in ids}
        uncounted = [erasure for erasure in claimed if erasure.vectors is None]
        await erasures.record_vectors(
            {each.event_id: len(stored.intersection(each.memory_ids)) for each in uncounted}
        )
        await index.drop(vectors)
        if mirroring is not None:
            await mirroring.settle()
        await erasures.end([erasure.event_id for erasure in claimed])
        done += len(claimed)
    return done
