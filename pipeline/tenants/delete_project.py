"""Delete projects and organizations: refused until their memories and events are gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.accounting.balance import fold_all
from pipeline.domain.errors import Conflict
from pipeline.domain.tenants import OrganizationId
from pipeline.ledger.filter_conditions import among, looked_up
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import (
    api_keys,
    book_entries,
    books,
    events,
    graph_outbox,
    lanes,
    memories,
    metadata,
    organizations,
    projects,
    rebuilt,
    shadows,
    turn_vectors,
)
from pipeline.tenants.api_keys import keep_one_admin, lock_organization
from pipeline.tenants.projects import Project

NOT_EMPTY = (
    "The project, or a replay of it, still holds memories or events that have not ended. Delete "
    "its memories, discard its replays and wait for its events first."
)


class ProjectDeletion(LedgerStore):
    """Delete a project, or an organization with all its projects, in two steps: `begin`, `remove`.

    Between the steps the caller deletes from the vector index the ids that `begin` returned; adds
    are refused. If the second step is refused, `keep` ends the deletion: nothing was hidden.
    """

    async def begin(self, which: Project | OrganizationId) -> Sequence[UUID]:
        """Refuse adds to the projects from now on. Returns the ids that the vector index may have.

        These are the turns, and memories in a new index. The caller deletes them from the index. In
        case that its process ends, the refusal ends by itself after ten minutes (accept.sql).
        Errors: Conflict, as `remove`.
        """
        async with self._engine.begin() as connection:
            ids = await _locked_empty(connection, which)
            begun = update(projects).where(projects.c.id.in_(ids)).values(deleting_at=func.now())
            await connection.execute(begun)
            built = select(rebuilt.c.memory_id).where(rebuilt.c.memory_id.in_(_memories_of(ids)))
            return (await connection.scalars(union_all(_turns_of(ids), built))).all()

    async def remove(self, which: Project | OrganizationId) -> None:
        """Delete the projects with their keys, members, replays and every other row of them.

        Errors: Conflict while one has active memories, open events or vectors not yet written to
        the index, or if the organization would be left without a lasting admin key.
        """
        async with self._engine.begin() as connection:
            ids = await _locked_empty(connection, which)
            for gone in _deletes(ids):
                await connection.execute(gone)
            if not isinstance(which, Project):
                await connection.execute(delete(organizations).where(organizations.c.id == which))
            await _end_books(connection, ids)

    async def keep(self, which: Project | OrganizationId) -> None:
        """Accept adds to the projects again, and have their turns written to the index again.

        After a deletion that was refused or did not finish.
        """
        marked = and_(_is_one_of(which), projects.c.deleting_at.is_not(None))
        async with self._engine.begin() as connection:
            ids = (await connection.scalars(locked(projects, marked))).all()
            unmarked = update(projects).where(projects.c.id.in_(ids)).values(deleting_at=None)
            await connection.execute(unmarked)
            stale = locked(turn_vectors, turn_vectors.c.id.in_(_turns_of(ids)))
            again = update(turn_vectors).where(turn_vectors.c.id.in_(stale))
            await connection.execute(again.values(version=turn_vectors.c.version + 1))


def _is_one_of(which: Project | OrganizationId) -> ColumnElement[bool]:
    """Match the project, or those of the organization."""
    if isinstance(which, Project):
        return projects.c.id == which.id
    return projects.c.organization_id == which


async def _locked_empty(
    connection: AsyncConnection, which: Project | OrganizationId
) -> Sequence[UUID]:
    """Lock the projects and their replays and return their ids.

    Errors: Conflict if one is not empty, or if the keys of a single project include the last
    lasting admin key of the organization.
    """
    organization_id = which.organization_id if isinstance(which, Project) else which
    await lock_organization(connection, organization_id)
    # The row locks block new adds until this transaction ends; then the projects are gone.
    own = (await connection.scalars(locked(projects, _is_one_of(which)))).all()
    shadowed = select(shadows.c.id).where(among(shadows.c.project_id, own))
    ids = [*own, *(await connection.scalars(shadowed)).all()]
    await _refuse_unless_empty(connection, ids)
    if isinstance(which, Project):
        without = api_keys.c.project_id == which.id
        await keep_one_admin(connection, organization_id, without=without)
    return ids


def _memories_of(ids: Sequence[UUID]) -> Select[UUID]:
    return select(memories.c.id).where(memories.c.project_id.in_(ids))


def _turns_of(ids: Sequence[UUID]) -> Select[UUID]:
    """Ids of the turn vectors of these projects."""
    of_events = select(events.c.id).where(events.c.project_id.in_(ids))
    return select(turn_vectors.c.id).where(turn_vectors.c.event_id.in_(of_events))


async def _refuse_unless_empty(connection: AsyncConnection, ids: Sequence[UUID]) -> None:
    """Lock the projects' lanes. Errors: Conflict if memories or open events are left."""
    # While the lanes are locked they accept no event, and no worker can finish a batch.
    await lock_lanes(connection, lanes.c.project_id.in_(ids))
    remembered = exists().where(
        memories.c.project_id.in_(ids),
        or_(memories.c.state == "ACTIVE", memories.c.owed),
    )
    going = exists().where(events.c.project_id.in_(ids), events.c.completed_at.is_(None))
    if await connection.scalar(select(or_(remembered, going))):
        raise Conflict(NOT_EMPTY)


def _deletes(ids: Sequence[UUID]) -> Iterator[Delete]:
    """Yield a DELETE for each table, referring tables first.

    Rows without a `project_id` are matched by their lane, event or batch.
    """
    owners = {
        "lane_id": select(lanes.c.id).where(lanes.c.project_id.in_(ids)),
        "event_id": select(events.c.id).where(events.c.project_id.in_(ids)),
        "batch_id": select(events.c.batch_id).where(events.c.project_id.in_(ids)),
    }
    # The books are not deleted: fold_all() brings them to zero. The outbox has the deletions that
    # the graph server does not have yet.
    others = (books, book_entries, graph_outbox, rebuilt)
    in_new_index = or_(
        rebuilt.c.memory_id.in_(_memories_of(ids)), rebuilt.c.memory_id.in_(_turns_of(ids))
    )
    yield delete(rebuilt).where(in_new_index)
    tables = [table for table in reversed(metadata.sorted_tables) if table not in others]
    for table in tables:
        if "project_id" not in table.c:
            owned = (name for name in owners if name in table.c)
            yield from (
                delete(table).where(looked_up(table.c[name], owners[name])) for name in owned
            )
    for table in tables:
        if "project_id" in table.c:
            yield delete(table).where(table.c.project_id.in_(ids))
    yield delete(projects).where(projects.c.id.in_(ids))


async def _end_books(connection: AsyncConnection, project_ids: Sequence[UUID]) -> None:
    """Fold the counts of deleted projects, and delete what no row of them takes back.

    These are their searches, incognito adds, and events that the retention deleted.
    """
    await fold_all(connection)
    rest = (books.c.project_id.in_(project_ids), books.c.owner == "")
    await connection.execute(delete(books).where(*rest))
