"""Delete projects and organizations: refused until their memories and events are gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from sqlalchemy import Delete, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.accounting.balance import SEARCH, fold_all
from pipeline.domain.errors import Conflict
from pipeline.domain.tenants import OrganizationId
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import lock_lanes, locked
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
    shadows,
    turn_vectors,
)
from pipeline.tenants.api_keys import hold, keep_one_admin
from pipeline.tenants.projects import Project

NOT_EMPTY = (
    "The project, or a replay of it, still holds memories or events that have not ended. Delete "
    "its memories, discard its replays and wait for its events first."
)


class Removal:
    """Delete a project or an organization in two steps: `forget`, then `remove`.

    Between the steps the caller deletes from the vector index the ids that `forget` returned.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def forget(self, project: Project) -> Sequence[UUID]:
        """Hide all turns of a project before its removal. Returns ids of its turn vectors.

        Searches find none of its turns from then on. The caller deletes these ids from the vector
        index. Errors: Conflict, as `remove`.
        """
        mine = lanes.c.project_id == project.id
        event_ids = select(events.c.id).where(events.c.project_id == project.id)
        turn_ids = select(turn_vectors.c.id).where(turn_vectors.c.event_id.in_(event_ids))
        async with self._engine.begin() as connection:
            await self._refuse(connection, project)
            forgotten = update(lanes).where(mine).values(forgotten_seq=lanes.c.accepted_seq)
            await connection.execute(forgotten)
            return (await connection.scalars(turn_ids)).all()

    async def remove(self, project: Project) -> None:
        """Delete a project with its keys, members, replays and every other row of it.

        Errors: Conflict while it has active memories, open events or vectors not yet written to the
        index, or if the organization would be left without a lasting admin key.
        """
        async with self._engine.begin() as connection:
            ids = await self._refuse(connection, project)
            for gone in _deletes(ids):
                await connection.execute(gone)
            await fold_all(connection)
            searches = books.c.project_id.in_(ids) & (books.c.kind == SEARCH)
            await connection.execute(delete(books).where(searches))

    async def forget_organization(self, organization_id: OrganizationId) -> Sequence[UUID]:
        """Like `forget`, for all projects of an organization."""
        async with self._engine.begin() as connection:
            ids = await self._refuse_organization(connection, organization_id)
            mine = lanes.c.project_id.in_(ids)
            await connection.execute(
                update(lanes).where(mine).values(forgotten_seq=lanes.c.accepted_seq)
            )
            event_ids = select(events.c.id).where(events.c.project_id.in_(ids))
            turn_ids = select(turn_vectors.c.id).where(turn_vectors.c.event_id.in_(event_ids))
            return (await connection.scalars(turn_ids)).all()

    async def remove_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization with its projects and keys. Errors: Conflict, as `remove`."""
        async with self._engine.begin() as connection:
            for gone in _deletes(await self._refuse_organization(connection, organization_id)):
                await connection.execute(gone)
            await connection.execute(
                delete(organizations).where(organizations.c.id == organization_id)
            )
            await fold_all(connection)

    async def _refuse_organization(
        self, connection: AsyncConnection, organization_id: OrganizationId
    ) -> Sequence[UUID]:
        """Lock all projects and replays of an organization and return their ids.

        Errors: Conflict if one of them is not empty.
        """
        await hold(connection, organization_id)
        mine = projects.c.organization_id == organization_id
        # The row locks block new adds until this transaction ends; then the projects are gone.
        own = (await connection.scalars(locked(projects, mine))).all()
        shadowed = select(shadows.c.id).where(among(shadows.c.project_id, own))
        ids = [*own, *(await connection.scalars(shadowed)).all()]
        await _refuse_unless_empty(connection, ids)
        return ids

    async def _refuse(self, connection: AsyncConnection, project: Project) -> Sequence[UUID]:
        """Lock the project and its replays and return their ids.

        Errors: Conflict if one is not empty, or if its keys include the last lasting admin key.
        """
        await hold(connection, project.organization_id)
        shadowed = select(shadows.c.id).where(shadows.c.project_id == project.id)
        # The row lock blocks new adds until this transaction ends; then the project is gone.
        await connection.execute(locked(projects, projects.c.id == project.id))
        ids = [project.id, *(await connection.scalars(shadowed)).all()]
        await _refuse_unless_empty(connection, ids)
        await keep_one_admin(
            connection,
            project.organization_id,
            without=api_keys.c.project_id == project.id,
        )
        return ids


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
    others = (books, book_entries, graph_outbox)
    tables = [table for table in reversed(metadata.sorted_tables) if table not in others]
    for table in tables:
        if "project_id" not in table.c:
            owned = (name for name in owners if name in table.c)
            yield from (delete(table).where(table.c[name].in_(owners[name])) for name in owned)
    for table in tables:
        if "project_id" in table.c:
            yield delete(table).where(table.c.project_id.in_(ids))
    yield delete(projects).where(projects.c.id.in_(ids))
