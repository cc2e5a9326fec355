"""Erasure in the ledger: one transaction deletes all rows of an owner.

Lock order: see pipeline/erasure/locking.py. Once the rows are locked, no other transaction can add
to the rows that are counted and deleted. The number of rows that an erasure reads follows the
number of the owner's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    Uuid,
    and_,
    delete,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.accounting.balance import fold_all
from pipeline.domain.events import Status
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.erasure.locking import Locked, OwnedRows, OwnerKey, lock_owned, owner_named
from pipeline.erasure.sql import statement
from pipeline.ledger.fetching import execute, fetch, fetch_known
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import events, memories, shadows
from pipeline.ledger.tables.columns import metadata, now, partial, time
from pipeline.replays.store import read, sweep_out
from pipeline.seals.entries import record_erasure
from pipeline.seals.keys import SealKeys
from pipeline.tenants.owners import KINDS

__all__ = ["ErasureReceipt", "Erasures", "OwnerKey", "PendingErasure", "erasures"]

# Time one process has to delete the vectors before another one may claim the erasure.
LEASE = timedelta(seconds=60)
# Pause before the second pass; no vector write that was under way lasts that long.
AGAIN = timedelta(seconds=60)
# Maximum wait in seconds of the end of a session for a lock.
END_LOCK_S = 1
# The kinds of owners from the widest to the narrowest. Those after a kind belong to it.
WIDEST_FIRST = tuple(KINDS)
ERASED = "Erased by request; only numbers are left."
WITHDRAWN = "The answer is withdrawn: it was made of memories that were erased since. Ask again."
DONE = "Everything of it is erased; GET /v1/erasures/{event_id}/ says how much there was."
NO_SUCH_ERASURE = "There is no erasure with this id."


# Receipts of erasures. The erased id is not stored: the client that has the event's id knows it.
erasures = Table(
    "erasures",
    metadata,
    Column("event_id", ForeignKey("events.id"), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    # Number of rows erased, by store; `vectors` once they are counted.
    Column("counts", JSONB, nullable=False),
    # Ids of the memories and turns to delete from the index, and the time of the next pass; both
    # NULL once the erasure is complete.
    Column("memory_ids", ARRAY(Uuid)),
    time("due_at"),
    # The end of a session, as opposed to a request.
    Column("of_session", Boolean, nullable=False, server_default="false"),
    # The buckets of the index with its vectors follow from these: see vector_index/buckets.
    Column("owner_hashes", ARRAY(BigInteger)),
    now("created_at"),
    CheckConstraint("kind IN ('user', 'agent', 'app', 'run')", name="kind"),
    CheckConstraint("(memory_ids IS NULL) = (due_at IS NULL)", name="due"),
    Index("ix_erasures_created", "project_id", "created_at"),
    partial("ix_erasures_due", "of_session", "due_at", where="due_at IS NOT NULL"),
)


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """A claimed erasure with vectors to delete.

    `owner_hashes`: where they can be in the index; None for anywhere. `vectors`: their number, None
    until counted.
    """

    event_id: UUID
    memory_ids: Sequence[UUID]
    owner_hashes: Sequence[int] | None
    vectors: int | None


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Receipt of an erasure. `counts`: number of rows erased, by store.

    It does not name the owner, because the name is erased, too.
    """

    event_id: UUID
    kind: str
    status: Status
    counts: Mapping[str, int]
    created_at: datetime
    completed_at: datetime | None


class Erasures(LedgerStore):
    """Erase owners from the ledger and keep the receipts. `seal_keys`: sign what they cover."""

    def __init__(self, engine: AsyncEngine, seal_keys: SealKeys) -> None:
        super().__init__(engine)
        self._seal_keys = seal_keys

    async def erase(self, project_id: ProjectId, owner: OwnerKey) -> UUID:
        """Delete every scope with this id from the ledger. Returns the id of the event."""
        own = Scope(project_id)
        while True:
            async with self._engine.begin() as connection:
                if locked := await lock_owned(connection, own, owner):
                    return await self._erase(connection, own, owner, locked)

    async def end_run(self, project_id: ProjectId, run_id: str) -> UUID | None:
        """Erase a temporary run, unless its end was moved. Returns the id of the event, or None.

        Errors: LedgerUnavailable after a second of waiting for a lock, because other runs wait.
        """
        own, owner = Scope(project_id), OwnerKey("run", run_id)
        while True:
            async with self._engine.begin() as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{END_LOCK_S}s'"))
                if locked := await lock_owned(connection, own, owner):
                    if locked.erasure_id is None or not locked.is_over:
                        return None
                    return await self._erase(connection, own, owner, locked)

    async def _erase(
        self, connection: AsyncConnection, own: Scope, owner: OwnerKey, locked: Locked
    ) -> UUID:
        """Delete the locked rows and write the event, in the caller's transaction.

        The event of a private run is known since its beginning. Returns its id.
        """
        project_id, owned = own.project_id, locked.owned
        event_id = locked.erasure_id or uuid4()
        copies = await _drop_shadows(connection, project_id, owner) if locked.has_replays else ()
        question_ids = (
            await _withdraw(connection, project_id, owner, owned) if locked.has_questions else ()
        )
        if locked.has_seals and (owned.lane_ids or question_ids):
            await record_erasure(
                connection,
                self._seal_keys,
                project_id,
                event_id,
                lane_ids=owned.lane_ids,
                memory_ids=owned.memory_ids,
                question_ids=question_ids,
            )
        values = {
            "project_id": project_id,
            "own_lane_id": own.lane_id,
            "event_id": event_id,
            "kind": owner.kind,
            "owner_id": owner.id,
            "narrower": WIDEST_FIRST[WIDEST_FIRST.index(owner.kind) + 1 :],
            **columns_of(owned, "lane_ids", "memory_ids", "owner_hashes", "run_ids"),
            "vector_ids": [*owned.memory_ids, *copies, *locked.turn_ids],
            "this": owner.run_id,
            "of_session": locked.erasure_id is not None,
            "note": ERASED,
        }
        await connection.execute(statement("erase_rows"), values)
        return event_id

    async def claim(self, *, of_sessions: bool, limit: int) -> list[PendingErasure]:
        """Claim the next erasures with vectors to delete, for 60 seconds.

        `of_sessions`: ends of sessions; else requests.
        """
        values = {"lease": LEASE, "of_session": of_sessions, "limit": limit}
        rows = await fetch(self._single, statement("claim_erasures"), values)
        return [value_of(PendingErasure, row) for row in rows]

    async def fold_books(self) -> None:
        """Add up all entries of the books: those of the erased owners, with their ids, end."""
        async with self._engine.begin() as connection:
            await fold_all(connection)

    async def record_vectors(self, numbers: Mapping[UUID, int]) -> None:
        """Store the numbers of vectors by event, before the first vector is deleted."""
        if not numbers:
            return
        values = {"event_ids": list(numbers), "numbers": list(numbers.values())}
        await self._direct.rows(statement("record_vectors"), values)

    async def end(self, event_ids: Sequence[UUID]) -> None:
        """Record that the index holds no vector of these, after each of the two passes."""
        values = {"event_ids": list(event_ids), "again": AGAIN, "note": DONE}
        await execute(self._single, statement("end_erasures"), values)

    async def receipt(self, project_id: ProjectId, event_id: UUID) -> ErasureReceipt:
        """Return the receipt of an erasure. Errors: NotFound."""
        query = (
            select(erasures, events.c.status, events.c.completed_at)
            .join(events)
            .where(erasures.c.project_id == project_id, erasures.c.event_id == event_id)
        )
        row = await fetch_known(self._single, query, missing=NO_SUCH_ERASURE)
        return value_of(ErasureReceipt, row, status=Status(row.status))


async def _withdraw(
    connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey, owned: OwnedRows
) -> Sequence[UUID]:
    """Withdraw answers that were made of the owner's memories, and questions that name it.

    Returns the ids of the latter, which are cleared.
    """
    values = {
        # See `answer_sources`.
        "sources": [*owned.lane_ids, project_id] if owned.lane_ids else [],
        "owner": owner_named(project_id, owner),
        "erased": ERASED,
        "withdrawn": WITHDRAWN,
    }
    return (await connection.scalars(statement("withdraw_answers"), values)).all()


async def _drop_shadows(
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
