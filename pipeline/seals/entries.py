"""Entries of erasures and replays, queued in the transaction of the change that they cover.

The sweeper appends them to the chains. Each is signed by the process that makes it, so a row in the
queue alone covers nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import structlog
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import seal_projects, seal_queue
from pipeline.seals.chain import ERASURE, REPLAY, ranges
from pipeline.seals.keys import Part, SealKeys
from pipeline.seals.sql import statement

log = structlog.get_logger()


def entry_parts(
    project_id: ProjectId, lane_id: UUID, kind: str, row_id: UUID, row_no: int, covers: str
) -> list[Part]:
    """The message whose signature an entry in the queue has."""
    return ["entry", project_id, lane_id, kind, row_id, row_no, covers]


async def record_erasure(
    connection: AsyncConnection,
    keys: SealKeys,
    project_id: ProjectId,
    event_id: UUID,
    *,
    lane_ids: Sequence[UUID],
    memory_ids: Sequence[UUID],
    question_ids: Sequence[UUID],
) -> None:
    """Mark the seals of the rows that an erasure is about to delete, and queue its entries.

    The caller has locked the head of the project. `question_ids`: events of other lanes that it
    withdraws. Without a key the marks have no entry, so a verification names the rows as removed.
    """
    values = {
        "project_id": project_id,
        "event_id": event_id,
        "lane_ids": list(lane_ids),
        "memory_ids": list(memory_ids),
        "event_ids": list(question_ids),
    }
    numbers = defaultdict(list)
    for row in await connection.execute(statement("mark_erased"), values):
        numbers[row.lane_id].append(row.number)
    for lane_id, covered in sorted(numbers.items()):
        entry = (project_id, lane_id, ERASURE, event_id, 0, ranges(covered))
        await _queue(connection, keys, *entry)


async def record_replay(
    connection: AsyncConnection,
    keys: SealKeys,
    project_id: ProjectId,
    *,
    lane_id: UUID,
    event_id: UUID,
    replays: int,
) -> None:
    """Queue the entry of a replay that changes an event. `replays`: its number of replays now."""
    query = select(seal_projects.c.state).where(seal_projects.c.project_id == project_id)
    if await connection.scalar(query) is not None:
        await _queue(connection, keys, project_id, lane_id, REPLAY, event_id, replays, "")


async def _queue(
    connection: AsyncConnection,
    keys: SealKeys,
    project_id: ProjectId,
    lane_id: UUID,
    kind: str,
    row_id: UUID,
    row_no: int,
    covers: str,
) -> None:
    """Sign an entry and queue it. Without a key there is none, which the log says."""
    if not keys:
        log.error("seal_key_missing", kind=kind, event_id=str(row_id))
        return
    parts = entry_parts(project_id, lane_id, kind, row_id, row_no, covers)
    await connection.execute(
        insert(seal_queue).values(
            project_id=project_id,
            lane_id=lane_id,
            kind=kind,
            row_id=row_id,
            row_no=row_no,
            covers=covers,
            key_id=keys.current,
            signature=keys.sign(*parts),
        )
    )
