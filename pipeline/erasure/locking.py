"""Locks of an erasure: taken so that no other transaction can add a row that it has not seen.

Lock order: the idempotency keys, then the private runs and the lanes, as adds lock them. An add may
commit a new key or a new lane between the reads and the locks: then all locks are released, and
taken again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.scope import Scope
from pipeline.erasure.sql import statement
from pipeline.ledger.tables import lanes
from pipeline.vector_index.buckets import owner_hash


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """Identity of an owner to erase: `kind` is user, agent, app or run."""

    kind: str
    id: str

    @property
    def run_id(self) -> str | None:
        """The id, if the owner is a run."""
        return self.id if self.kind == "run" else None


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
        run = await lock_rows(connection, own, owner, owned)
        if await _read(connection, own, owner) == owned:
            await locks.commit()
            return owned, run
        await locks.rollback()


async def _read(connection: AsyncConnection, own: Scope, owner: OwnerKey) -> OwnedRows:
    """Read which rows are to be locked."""
    values = {
        "project_id": own.project_id,
        "kind": owner.kind,
        "owner_id": owner.id,
        "owner": owner_named(own.project_id, owner),
    }
    row = (await connection.execute(statement("read_owned"), values)).one()
    hashes = {owner_hash(*place) for place in zip(row.projects, row.names, strict=True)}
    return OwnedRows(row.lane_ids, row.others, row.keys, sorted(hashes), row.run_ids)


async def lock_rows(
    connection: AsyncConnection, own: Scope, owner: OwnerKey, owned: OwnedRows
) -> OwnRun | None:
    """Lock them. Returns the erased run, if it is private.

    An add to a private run waits, and then sees its end.
    """
    values = {
        "project_id": own.project_id,
        "keys": list(owned.keys),
        "run_ids": list(owned.run_ids),
        "this": owner.run_id,
        "lane_ids": [*owned.lane_ids, *owned.others, own.lane_id],
    }
    row = (await connection.execute(statement("lock_owned"), values)).one()
    return OwnRun(row.erasure_id, row.is_over) if row.erasure_id else None
