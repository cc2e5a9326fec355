"""The end of a project: refused while it remembers anything, whole once it does not."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from sqlalchemy import Delete, delete, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain import Status
from pipeline.errors import Conflict
from pipeline.ledger.keys import hold, keep_one_admin
from pipeline.ledger.projects import Project
from pipeline.ledger.schema import api_keys, events, lanes, memories, metadata, projects

NOT_EMPTY = (
    "The project still holds memories, or events that have not ended. Delete its memories and wait "
    "for its events first; deleting a project never deletes what it remembers."
)


class Removal:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def remove(self, project: Project) -> None:
        """Take away the project, its keys and members, and all that is left of its past.

        Errors: Conflict while it holds memories or open events, or while the index owes it a
        write; and where nobody could administer the organization afterwards.
        """
        async with self._engine.begin() as connection:
            await hold(connection, project.organization_id)
            await _refuse_unless_empty(connection, project.id)
            await keep_one_admin(
                connection,
                project.organization_id,
                without=api_keys.c.project_id == project.id,
            )
            for gone in _deletes(project.id):
                await connection.execute(gone)


async def _refuse_unless_empty(connection: AsyncConnection, project_id: UUID) -> None:
    # With its lanes held, nothing more is accepted into them, and no worker finishes in between.
    mine = select(lanes.c.id).where(lanes.c.project_id == project_id)
    await connection.execute(mine.order_by(lanes.c.id).with_for_update())
    held = exists().where(
        memories.c.project_id == project_id,
        or_(memories.c.state == "ACTIVE", memories.c.projected_version != memories.c.version),
    )
    going = exists().where(
        events.c.project_id == project_id,
        events.c.status.in_([Status.PENDING, Status.RUNNING]),
    )
    if await connection.scalar(select(or_(held, going))):
        raise Conflict(NOT_EMPTY)


def _deletes(project_id: UUID) -> Iterator[Delete]:
    """Every table, each before those it refers to; what names no project goes by lane or event."""
    of_lane = select(lanes.c.id).where(lanes.c.project_id == project_id)
    of_event = select(events.c.id).where(events.c.project_id == project_id)
    of_batch = select(events.c.batch_id).where(events.c.project_id == project_id)
    owners = {"lane_id": of_lane, "event_id": of_event, "batch_id": of_batch}
    tables = list(reversed(metadata.sorted_tables))
    for table in tables:
        if "project_id" not in table.c:
            owned = (name for name in owners if name in table.c)
            yield from (delete(table).where(table.c[name].in_(owners[name])) for name in owned)
    for table in tables:
        if "project_id" in table.c:
            yield delete(table).where(table.c.project_id == project_id)
    yield delete(projects).where(projects.c.id == project_id)
