"""Checkpoints: recorded heads of a project, which logs and webhooks carry to other places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import seal_checkpoints
from pipeline.seals.heads import ProjectHead, SealState
from pipeline.seals.keys import SealKeys
from pipeline.seals.sql import statement


async def record(
    connection: AsyncConnection,
    keys: SealKeys,
    head: ProjectHead,
    now: datetime,
    *,
    every: timedelta,
) -> tuple[ProjectHead, Mapping[str, Any] | None]:
    """Record the head that is about to be signed, unless it has not changed or it is too early.

    Returns the head, and the checkpoint for the log, which the caller writes after the commit.
    """
    early = head.checkpoint_at and now < head.checkpoint_at + every
    if early or head.state is not SealState.COMPLETE:
        return head, None
    last = await last_checkpoint(connection, keys, head)
    if last is not None and last.root == head.digest:
        return head, None
    row = {
        "project_id": head.project_id,
        "number": head.checkpoints + 1,
        "counter": head.counter + 1,
        "lanes": head.lanes,
        "sealed_until": head.sealed_until,
        "root": head.digest,
    }
    signed = {"key_id": keys.current, "signature": keys.sign(*_parts(row))}
    await connection.execute(insert(seal_checkpoints).values(**row, **signed))
    until = head.sealed_until
    shown = row | {
        "project_id": str(head.project_id),
        "sealed_until": until and until.isoformat(),
        "root": head.digest.hex(),
    }
    values = {"project_id": head.project_id, "head": orjson.dumps(shown).decode()}
    await connection.execute(statement("announce_head"), values)
    return replace(head, checkpoints=head.checkpoints + 1, checkpoint_at=now), shown


async def last_checkpoint(
    connection: AsyncConnection, keys: SealKeys, head: ProjectHead
) -> Row[Any] | None:
    """The last checkpoint of a project; None if there is none, or if it was not signed here."""
    query = select(seal_checkpoints).where(
        seal_checkpoints.c.project_id == head.project_id,
        seal_checkpoints.c.number == head.checkpoints,
    )
    row = (await connection.execute(query)).one_or_none()
    return row if row is not None and is_checkpoint(keys, row) else None


async def sign_again(connection: AsyncConnection, keys: SealKeys, project_id: ProjectId) -> None:
    """Sign the checkpoints of a project with the current key."""
    mine = seal_checkpoints.c.project_id == project_id
    query = select(seal_checkpoints).where(mine, seal_checkpoints.c.key_id != keys.current)
    for row in (await connection.execute(query)).all():
        if is_checkpoint(keys, row):
            signed = {"key_id": keys.current, "signature": keys.sign(*_parts(row._asdict()))}
            this = update(seal_checkpoints).where(mine, seal_checkpoints.c.number == row.number)
            await connection.execute(this.values(signed))


def is_checkpoint(keys: SealKeys, row: Row[Any]) -> bool:
    """Tell if this server signed the checkpoint."""
    return keys.verifies(row.key_id, row.signature, *_parts(row._asdict()))


def _parts(row: Mapping[str, Any]) -> list[Any]:
    names = ("project_id", "number", "counter", "lanes", "sealed_until", "root")
    return ["checkpoint", *(row[name] for name in names)]
