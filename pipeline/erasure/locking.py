"""Locks of an erasure: taken so that no other transaction can add a row that it has not seen.

Lock order: the idempotency keys, then the lanes, as adds lock them. An add may commit a new key or
a new lane between the reads and the locks: then all locks are released, and taken again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, any_, literal, select, union_all
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Text

from pipeline.domain.scope import Scope
from pipeline.erasure.sql import statement
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.tables import events, idempotency_keys, lanes, shadows
from pipeline.tenants.owners import KINDS
from pipeline.vector_index.buckets import owner_hash


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """Identity of an owner to erase: `kind` is user, agent, app or run."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class OwnedRows:
    """Rows that an erasure locks.

    `lane_ids`: the owner's lanes. `others`: lanes of replays of them, and of open questions whose
    answers it withdraws. `owner_hashes`: the places of the owner's vectors in the index. `run_ids`:
    the owner, if it is a run, and the temporary runs of the lanes.
    """

    lane_ids: Sequence[UUID]
    others: Sequence[UUID]
    keys: Sequence[str]
    owner_hashes: Sequence[int]
    run_ids: Sequence[str]


def sources_of(lane_ids: Sequence[UUID], project_id: UUID) -> list[UUID]:
    """The sources of answers that an erasure of these lanes withdraws: see `answer_sources`."""
    return [*lane_ids, project_id] if lane_ids else []


def owner_named(project_id: UUID, owner: OwnerKey) -> str:
    """The owner as `owners_named` in PostgreSQL writes it."""
    return f"{project_id}/{owner.kind}/{owner.id}"


@dataclass(frozen=True, slots=True)
class OwnRun:
    """The erased run, if it is private: its event, and whether its time is over."""

    erasure_id: UUID
    is_over: bool


async def lock_owned(
    connection: AsyncConnection, own: Scope, owner: OwnerKey
) -> tuple[OwnedRows, OwnRun | None]:
    """Lock the project's own lane, and the rows of the owner that adds and workers lock, too.

    The number of rows read follows the number of the owner's rows.
    """
    row = {"id": own.lane_id, "project_id": own.project_id, "state": "IDLE"}
    await connection.execute(postgresql.insert(lanes).values(row).on_conflict_do_nothing())
    while True:
        locks = await connection.begin_nested()
        owned = await _read(connection, own, owner)
        if owned.keys:
            await connection.execute(_lock_keys(own, owned.keys))
        run = await _lock_runs(connection, own, owner, owned) if owned.run_ids else None
        lane_ids = [*owned.lane_ids, *owned.others, own.lane_id]
        await lock_lanes(connection, among(lanes.c.id, lane_ids))
        if await _read(connection, own, owner) == owned:
            await locks.commit()
            return owned, run
        await locks.rollback()


async def _read(connection: AsyncConnection, own: Scope, owner: OwnerKey) -> OwnedRows:
    """Read which rows are to be locked."""
    rows = (await connection.execute(_lanes_of(own, owner))).all()
    lane_ids = [row.id for row in rows if row.project_id == own.project_id]
    hashes = {
        owner_hash(row.project_id, row.user_id or row.agent_id or row.app_id or row.run_id)
        for row in rows
    }
    run_ids = {row.run_id for row in rows if row.temporary}
    if owner.kind == "run":
        run_ids.add(owner.id)
    values = {
        "sources": sources_of(lane_ids, own.project_id),
        "owner": owner_named(own.project_id, owner),
    }
    questions = (await connection.scalars(statement("questions_to_lock"), values)).all()
    others = {row.id for row in rows} | set(questions)
    keys = [row.key for row in await connection.execute(_keys_of(lane_ids))] if lane_ids else []
    return OwnedRows(
        lane_ids, sorted(others - set(lane_ids)), keys, sorted(hashes), sorted(run_ids)
    )


async def _lock_runs(
    connection: AsyncConnection, own: Scope, owner: OwnerKey, owned: OwnedRows
) -> OwnRun | None:
    """Lock the private runs; an add to one waits, and then sees its end. Returns the erased one."""
    values = {
        "project_id": own.project_id,
        "run_ids": list(owned.run_ids),
        "this": owner.id if owner.kind == "run" else None,
    }
    rows = (await connection.execute(statement("lock_private_runs"), values)).all()
    runs = (OwnRun(row.erasure_id, row.is_over) for row in rows if row.erased)
    return next(runs, None)


def _lanes_of(own: Scope, owner: OwnerKey) -> Any:
    """The owner's lanes in the project and in its replays, each by an index, in a fixed order."""
    ids = (lanes.c[name] for name in ("id", "project_id", "temporary", *KINDS.values()))
    columns = list(ids)
    this = lanes.c[KINDS[owner.kind]] == owner.id
    in_project = select(*columns).where(lanes.c.project_id == own.project_id, this)
    in_replays = (
        select(*columns)
        .select_from(shadows)
        .join(lanes, lanes.c.project_id == shadows.c.id)
        .where(shadows.c.project_id == own.project_id, this)
    )
    return union_all(in_project, in_replays).order_by("id")


def _keys_of(lane_ids: Sequence[UUID]) -> Select[tuple[str]]:
    """The idempotency keys of the events in these lanes."""
    return (
        select(idempotency_keys.c.key)
        .join(events, events.c.id == idempotency_keys.c.event_id)
        .where(among(events.c.lane_id, lane_ids))
        .order_by(idempotency_keys.c.key)
    )


def _lock_keys(own: Scope, keys: Sequence[str]) -> Select[tuple[str]]:
    """Lock these keys of the project, in the order adds use."""
    these = idempotency_keys.c.key == any_(literal(list(keys), ARRAY(Text)))
    return (
        select(idempotency_keys.c.key)
        .where(idempotency_keys.c.project_id == own.project_id, these)
        .order_by(idempotency_keys.c.key)
        .with_for_update()
    )
