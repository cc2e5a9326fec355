"""Erasure: delete a user, agent, app or run from all stores, with a receipt of the counts.

    erase ──► one commit: its rows leave the ledger, the fences of its lanes are raised
    finish ──► its vectors leave the index, its relations the graph server; the event is SUCCEEDED
           ──► and once more a minute later, for a vector write that was under way

Everything accepted before is deleted, whether done, running or waiting; adds accepted later start
from an empty scope. Messages in the broker carry only ids of lanes, so there is nothing to erase.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog

from pipeline.domain.errors import Conflict, MemlaneError, StageError, StoreUnavailable
from pipeline.domain.tenants import OrganizationId, ProjectId
from pipeline.erasure.store import Erasures, OwnerKey, PendingErasure
from pipeline.graph.mirror import Mirroring
from pipeline.ledger.failures import LedgerUnavailable, StatementRefused, is_out_of_reach
from pipeline.tenants.delete_project import ProjectDeletion
from pipeline.tenants.private_runs import PrivateRuns, RunEnd
from pipeline.tenants.projects import Project
from pipeline.vector_index.index import SoughtIds, VectorIndex

log = structlog.get_logger()

# Number of runs ended, and of erasures finished, in one step.
AT_ONCE = 50
# Delay from which ends of sessions are late.
LATE = timedelta(minutes=5)


async def erase(project_id: ProjectId, owner: OwnerKey, *, erasures: Erasures) -> UUID:
    """Erase every scope with this id. Returns the event's id; vectors are deleted within seconds.

    Erasing an id without any data is no error: all counts of the receipt are zero.
    """
    event_id = await erasures.erase(project_id, owner)
    log.info("erased", event_id=str(event_id), kind=owner.kind)
    return event_id


class SessionEnds:
    """Ends of temporary runs whose time is over, a limited number at a time, the oldest first.

    A run that cannot be erased is tried again after all others had their turn, so it blocks none.
    Safe to run in any number of processes and to stop at any point.
    """

    def __init__(self, runs: PrivateRuns, erasures: Erasures) -> None:
        self._runs = runs
        self._erasures = erasures
        self._after: RunEnd | None = None
        # True if all runs of the last step ended much later than they should.
        self.late = False

    @property
    def under_way(self) -> bool:
        """True until the last run had its turn."""
        return self._after is not None

    async def end_next(self) -> int:
        """Erase the next runs whose time is over. Returns the number of erased ones.

        Errors: LedgerUnavailable if the ledger is out of reach; the next call goes on there.
        """
        ended = 0
        ends = await self._runs.expired(after=self._after, limit=AT_ONCE)
        self.late = bool(ends) and ends[-1].overdue > LATE
        for end in ends:
            ended += await self._end(end)
            self._after = end
        if len(ends) < AT_ONCE:
            self._after = None
        return ended

    async def _end(self, end: RunEnd) -> bool:
        """Erase a run. Returns False if its end was moved, or if it cannot be erased now."""
        try:
            event_id = await self._erasures.end_run(end.project_id, end.run_id)
        except (MemlaneError, StatementRefused) as error:
            if is_out_of_reach(error):
                raise
            log.warning(
                "session_end_failed", project_id=str(end.project_id), error=type(error).__name__
            )
            return False
        if event_id is not None:
            log.info("session_ended", event_id=str(event_id))
        return event_id is not None


async def remove(
    which: Project | OrganizationId, *, deletion: ProjectDeletion, index: VectorIndex
) -> None:
    """Delete an empty project, or an organization whose projects are all empty, with its vectors.

    Safe to repeat after a failure at any point. A deletion that fails changes nothing, except that
    vectors are written again. Errors: Conflict while a project is not empty; StoreUnavailable if
    its vectors cannot be deleted.
    """
    ids = await deletion.begin(which)
    try:
        await index.drop(await index.holding(SoughtIds(ids)))
        await deletion.remove(which)
    except (Conflict, StageError, LedgerUnavailable):
        with suppress(LedgerUnavailable):  # then the mark ends by itself
            await deletion.keep(which)
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
    erasures that were not processed stay due. One that fails stops no other one while the store
    answers.
    """
    done = 0
    failure: StoreUnavailable | None = None
    while claimed := await erasures.claim(of_sessions=of_sessions, limit=AT_ONCE):
        await erasures.fold_books()
        dropped: list[UUID] = []
        try:
            dropped += await _drop(claimed, erasures, index)
        except StoreUnavailable:
            if not await index.answers():
                raise
            for each in claimed:
                try:
                    dropped += await _drop([each], erasures, index)
                except StoreUnavailable as error:
                    failure = error
        if mirroring is not None:
            await mirroring.settle()
        await erasures.end(dropped)
        done += len(dropped)
    if failure is not None:
        raise failure
    return done


async def _drop(
    claimed: Sequence[PendingErasure], erasures: Erasures, index: VectorIndex
) -> list[UUID]:
    """Delete the vectors of these erasures, and store their numbers. Returns their events' ids.

    Errors: StoreUnavailable.
    """
    vectors = await index.holding(
        *(SoughtIds(erasure.memory_ids, erasure.owner_hashes) for erasure in claimed)
    )
    stored = {key for ids in vectors.values() for key in ids}
    uncounted = [erasure for erasure in claimed if erasure.vectors is None]
    await erasures.record_vectors(
        {each.event_id: len(stored.intersection(each.memory_ids)) for each in uncounted}
    )
    await index.drop(vectors)
    return [erasure.event_id for erasure in claimed]
