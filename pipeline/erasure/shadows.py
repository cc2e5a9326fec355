"""Replays of an owner's scopes, which an erasure deletes."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.tenants import ProjectId
from pipeline.erasure.locking import OwnerKey
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.tables import memories, shadows
from pipeline.replays.store import read, sweep_out
from pipeline.tenants.owners import KINDS


async def drop_shadows(
    connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey
) -> Sequence[UUID]:
    """Delete replays of the owner's scopes, which are copies. Returns the ids of their memories."""
    of_owner = and_(shadows.c.project_id == project_id, shadows.c[KINDS[owner.kind]] == owner.id)
    shadow_ids = (await connection.scalars(select(shadows.c.id).where(of_owner))).all()
    if not shadow_ids:
        return ()
    copies = select(memories.c.id).where(among(memories.c.project_id, shadow_ids))
    memory_ids = (await connection.scalars(copies)).all()
    for shadow_id in shadow_ids:
        await sweep_out(connection, await read(connection, project_id, shadow_id))
    await connection.execute(delete(shadows).where(of_owner))
    return memory_ids
