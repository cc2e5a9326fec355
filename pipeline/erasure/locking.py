"""Locks of an erasure: taken so that no other transaction can add a row that it has not seen.

Lock order: the project, the idempotency keys, the private runs and the lanes, as adds lock them;
then the memories. One statement reads and locks all of them, and a second one reads them again: an
add may commit a new key, lane or memory while the first one waits for a lock. Then the transaction
ends, which releases the locks, and another one takes them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import ProjectGone
from pipeline.domain.scope import Scope
from pipeline.erasure.sql import statement
from pipeline.ledger.row_values import value_of
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
    the owner, if it is a run, and the temporary runs of the lanes. `memory_ids`: the memories of
    the lanes.
    """

    lane_ids: Sequence[UUID]
    others: Sequence[UUID]
    keys: Sequence[str]
    owner_hashes: Sequence[int]
    run_ids: Sequence[str]
    memory_ids: Sequence[UUID]

    @classmethod
    def of(cls, row: Row[Any]) -> OwnedRows:
        """The rows that a statement returned as arrays."""
        hashes = {owner_hash(*place) for place in zip(row.projects, row.names, strict=True)}
        return cls(row.lane_ids, row.others, row.keys, sorted(hashes), row.run_ids, row.memory_ids)


def owner_named(project_id: UUID, owner: OwnerKey) -> str:
    """The owner as `owners_named` in PostgreSQL writes it."""
    return f"{project_id}/{owner.kind}/{owner.id}"


@dataclass(frozen=True, slots=True)
class Locked:
    """The locked rows of an owner.

    `erasure_id`: the event of the erased run, if it is private; `is_over`: its time is over.
    `turn_ids`: index ids of the lanes' turns. `has_replays`: there are replays of the owner's
    scopes. `has_questions`: there are answers made of its memories, or questions that name it.
    `has_seals`: the project has seals.
    """

    owned: OwnedRows
    erasure_id: UUID | None
    is_over: bool | None
    turn_ids: Sequence[UUID]
    has_replays: bool
    has_questions: bool
    has_seals: bool


async def lock_owned(connection: AsyncConnection, own: Scope, owner: OwnerKey) -> Locked | None:
    """Lock the project's own lane, and the rows of the owner that adds and workers lock, too.

    An add to a private run waits, and then sees its end. The number of rows read follows the number
    of the owner's rows. Returns None if the rows changed in between: the caller ends the
    transaction, and tries again. Errors: ProjectGone.
    """
    values = {
        "project_id": own.project_id,
        "own_lane_id": own.lane_id,
        "kind": owner.kind,
        "owner_id": owner.id,
        "owner": owner_named(own.project_id, owner),
    }
    first = (await connection.execute(statement("lock_owned"), values)).one()
    if not first.has_project:
        raise ProjectGone("This API key is not valid: its project is deleted.")
    second = (await connection.execute(statement("read_locked"), values)).one()
    owned = OwnedRows.of(second)
    is_locked = (first.own_lanes, first.memories) == (1, len(owned.memory_ids))
    if not is_locked or OwnedRows.of(first) != owned:
        return None
    return value_of(Locked, second, owned=owned, erasure_id=first.erasure_id, is_over=first.is_over)
