"""Erasure: a user, agent, app or run is forgotten everywhere; a receipt says how much there was.

    erase ──► one commit: the ledger holds nothing of it, its lanes' fences are raised
    finish ──► the index is rid of its vectors; the event is SUCCEEDED
           ──► and once more a minute later, for a write of a vector that was under way

What was accepted before is gone, whether it was done, under way or waiting; what is accepted after
begins anew. Messages in the broker carry ids of lanes only: there is nothing in it to erase.
"""

from __future__ import annotations

from uuid import UUID

import structlog

from pipeline.domain.tenants import OrganizationId, ProjectId
from pipeline.erasure.store import Erasures, Whose
from pipeline.tenants.delete_project import Removal
from pipeline.tenants.projects import Project
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()


async def erase(project_id: ProjectId, whose: Whose, *, erasures: Erasures) -> UUID:
    """Erase every scope that carries this id. Returns the event; its vectors follow within seconds.

    To erase what was never there, or is no more, is no error: the receipt's counts are zeros.
    """
    event_id = await erasures.erase(project_id, whose)
    log.info("erased", event_id=str(event_id), kind=whose.kind)
    return event_id


async def remove(project: Project, *, removal: Removal, index: VectorIndex) -> None:
    """Take away a project with all that is left of its past. Safe to be begun again at any point.

    Errors: Conflict while it remembers anything; StoreUnavailable while its vectors cannot go.
    """
    await index.drop(await index.holding(await removal.forget(project)))
    await removal.remove(project)


async def remove_organization(
    organization_id: OrganizationId, *, removal: Removal, index: VectorIndex
) -> None:
    """Take away an organization whose projects are all empty. Safe to be begun again at any point.

    Errors: as `remove`.
    """
    await index.drop(await index.holding(await removal.forget_organization(organization_id)))
    await removal.remove_organization(organization_id)


async def finish(*, erasures: Erasures, index: VectorIndex) -> int:
    """Rid the index of what is erased. Returns how many erasures were looked after.

    Safe from any number of processes, and to be begun again at any point. Errors: StoreUnavailable;
    what was not reached stays due.
    """
    done = 0
    while (owed := await erasures.claim()) is not None:
        held = await index.holding(owed.memory_ids)
        if owed.vectors is None:
            await erasures.found(owed.event_id, sum(map(len, held.values())))
        await index.drop(held)
        await erasures.end(owed.event_id)
        done += 1
    return done
