"""Store of conflicts: reads, and resolutions as events.

    OPEN ──resolve──► RESOLVED   by a person: an event with a receipt; an undo opens it again
    OPEN ──change───► RESOLVED   no two statements against each other stand; one may have expired

Conflicts are written with the memories: see pipeline/lanes/effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Date,
    Row,
    Select,
    and_,
    case,
    cast,
    exists,
    func,
    literal_column,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.conflicts.sql import statement
from pipeline.domain.conflicts import ConflictState
from pipeline.domain.consolidation.decided import DecidedChange, merge, retire
from pipeline.domain.errors import Conflict, InvalidInput, NotFound
from pipeline.domain.events import EventType
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector
from pipeline.ledger.counting import count_near
from pipeline.ledger.fetching import execute
from pipeline.ledger.filter_conditions import among, looked_up, shown_lane
from pipeline.ledger.locks import lock_lane_of, locked
from pipeline.ledger.owned_rows import LaneRows, ListPage, page_of_owner
from pipeline.ledger.row_values import grouped, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import conflict_members, conflicts, events, memories
from pipeline.memories.decided import DecidedEvent, write_decided
from pipeline.memories.editing import lock_active
from pipeline.memories.expiration import unexpired

NO_SUCH_CONFLICT = "Conflict not found or you don't have permission to access it."


class Resolution(StrEnum):
    """A person's decision: one of the statements holds, all of them, or another text."""

    ONE = "ONE"
    BOTH = "BOTH"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True)
class MemberStatement:
    """A statement of a conflict. `standing`: the memory still has this text, and has not expired.

    `text`: None once a person has deleted the memory.
    """

    memory_id: UUID
    text: str | None
    speaker: str | None
    said_at: datetime
    standing: bool


@dataclass(frozen=True, slots=True)
class StoredConflict:
    """A conflict with its statements, the oldest first.

    `resolved_by`: the event of a person's resolution; None for a later change.
    """

    id: UUID
    slot: str
    state: ConflictState
    event_id: UUID
    resolution: Resolution | None
    resolved_by: UUID | None
    statements: Sequence[MemberStatement]
    created_at: datetime
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True)
class ResolveRequest:
    """A resolution: the memory to keep (ONE), all (BOTH), or a text with its vector (TEXT)."""

    conflict_id: UUID
    resolution: Resolution
    embedder: str
    memory_id: UUID | None = None
    text: str | None = None
    vector: Vector | None = None


class Conflicts(LedgerStore):
    """Store of the conflicts."""

    async def get(self, project_id: ProjectId, conflict_id: UUID) -> StoredConflict:
        """One conflict. Errors: NotFound."""
        this = and_(conflicts.c.project_id == project_id, conflicts.c.id == conflict_id)
        async with self._single.connect() as connection:
            rows = await _stored(connection, _QUERY.where(this))
        if not rows:
            raise NotFound(NO_SUCH_CONFLICT)
        return rows[0]

    async def page(
        self,
        project_id: ProjectId,
        *,
        ids: Mapping[str, str] | None = None,
        state: ConflictState | None,
        limit: int,
        offset: int,
    ) -> ListPage[StoredConflict]:
        """A page of the project's conflicts, newest first, and their number: see `count_near`.

        `ids`: only those of the lanes with these entity ids.
        """
        order = (conflicts.c.created_at.desc(), conflicts.c.id)
        if ids:
            own = await page_of_owner(
                self._direct, project_id, _rows_of(state), ids, limit=limit, offset=offset
            )
            own_ids = [row_id for (row_id,) in own.rows]
            these = and_(conflicts.c.project_id == project_id, among(conflicts.c.id, own_ids))
            async with self._single.connect() as connection:
                rows = await _stored(connection, _QUERY.where(these).order_by(*order))
            return ListPage(rows, own.count, own.bounded)
        mine = and_(conflicts.c.project_id == project_id, shown_lane(conflicts.c.lane_id))
        parts = [select(conflicts.c.id).where(mine, part) for part in _parts_of(state)]
        newest = [part.order_by(*order).limit(offset + limit) for part in parts]
        query = (
            _QUERY.where(looked_up(conflicts.c.id, _joined(newest)))
            .order_by(*order)
            .limit(limit)
            .offset(offset)
        )
        count = await count_near(self._single, _joined(parts), limit=limit, offset=offset)
        async with self._single.connect() as connection:
            return ListPage(await _stored(connection, query), count)

    async def close_expired(self, *, limit: int) -> int:
        """Mark conflicts whose last statements have expired as resolved, at most `limit`.

        They are shown as resolved from the next day on, also without the mark, but until then each
        list reads them. Returns their number.
        """
        return await execute(self._engine, statement("close_expired"), {"limit": limit})

    async def resolve(
        self, project_id: ProjectId, request: ResolveRequest
    ) -> tuple[UUID, list[UUID]]:
        """Resolve an open conflict, as an event. Returns its id and the changed memories.

        Errors: NotFound; Conflict if it is resolved already, or if another memory has the text;
        InvalidInput for a memory that is not part of it.
        """
        async with self._engine.begin() as connection:
            this = conflicts.c.id == request.conflict_id
            mine = and_(conflicts.c.project_id == project_id, this)
            row = await lock_lane_of(connection, conflicts, mine, missing=NO_SUCH_CONFLICT)
            of_it = select(conflict_members.c.memory_id).where(
                conflict_members.c.conflict_id == request.conflict_id
            )
            ids = (await connection.scalars(of_it)).all()
            current = await lock_active(connection, project_id, ids)
            await connection.execute(locked(conflicts, this))
            stored = next(iter(await _stored(connection, _QUERY.where(this))), None)
            if stored is None:  # erased while this waited for the lane
                raise NotFound(NO_SUCH_CONFLICT)
            if stored.state is not ConflictState.OPEN:
                raise Conflict("This conflict is resolved already.")
            standing = [current[s.memory_id] for s in stored.statements if s.standing]
            event_id = uuid4()
            changes = _changes(request, standing)
            note = f"A person resolved the conflict {stored.id}."
            options = {"source": "conflict", "conflict_id": str(stored.id)}
            options["resolution"] = request.resolution.value
            await write_decided(
                connection,
                project_id,
                row.lane_id,
                DecidedEvent(
                    event_id,
                    EventType.RESOLUTION,
                    options,
                    note,
                    edited=request.resolution is Resolution.TEXT,
                ),
                changes,
                vector=request.vector,
                embedder=request.embedder,
            )
            await connection.execute(
                update(conflicts)
                .where(this)
                .values(
                    resolved_by=event_id,
                    resolution=request.resolution,
                    resolved_at=func.now(),
                )
            )
        return event_id, [c.before.id for c in changes if c.outcome is not Outcome.NOOP]


# A member's memory, in the lane of the conflict.
_ITS_MEMORY = and_(
    memories.c.id == conflict_members.c.memory_id,
    memories.c.lane_id == conflict_members.c.lane_id,
)
_STANDING = and_(
    _ITS_MEMORY,
    memories.c.state == "ACTIVE",
    memories.c.text_hash == conflict_members.c.text_hash,
    unexpired(),
)
_WITH_EVENT = conflicts.outerjoin(
    events,
    and_(events.c.id == conflicts.c.resolved_by, events.c.project_id == conflicts.c.project_id),
)
_DECIDED = and_(conflicts.c.resolved_by.is_not(None), events.c.undone_at.is_(None))
_today = cast(func.timezone("UTC", func.now()), Date)
# Triggers keep `open_until`, see pipeline/ledger/tables/conflicts.py.
_OPEN = conflicts.c.open_until >= _today
_CLOSED = conflicts.c.open_until.is_(None)
# The first condition is that of an index.
_EXPIRED = and_(
    conflicts.c.open_until < literal_column("'infinity'"), conflicts.c.open_until < _today
)
_shown_state = case((_OPEN, ConflictState.OPEN.value), else_=ConflictState.RESOLVED.value)
_QUERY: Select[Any] = select(
    *conflicts.c, _shown_state.label("state"), _DECIDED.label("decided")
).select_from(_WITH_EVENT)
# A memory that a person deleted. An undo of the deletion ends this.
_FORGOTTEN = and_(memories.c.state == "RETIRED", memories.c.forgotten_at.is_not(None))
# A member's memory in its present state; a memory that was erased has none.
_MEMBERS: Select[Any] = (
    select(
        conflict_members.c.conflict_id,
        memories.c.id,
        case((~_FORGOTTEN, memories.c.text)).label("text"),
        memories.c.speaker,
        memories.c.said_at,
        exists().where(_STANDING).correlate(conflict_members).label("standing"),
    )
    .select_from(conflict_members.join(memories, _ITS_MEMORY))
    .distinct()
    .order_by(memories.c.said_at, memories.c.id)
)


def _parts_of(state: ConflictState | None) -> list[ColumnElement[bool]]:
    """Conditions on the conflicts of a state. Each has an index, and none matches the same rows."""
    match state:
        case None:
            return [true()]
        case ConflictState.OPEN:
            return [and_(~_CLOSED, _OPEN)]
        case ConflictState.RESOLVED:
            return [_CLOSED, _EXPIRED]


@cache
def _rows_of(state: ConflictState | None) -> LaneRows:
    """The conflicts of a state as rows of an owner's list."""
    return LaneRows(conflicts, _parts_of(state), _parts_of(state))


def _joined(parts: Sequence[Select[tuple[UUID]]]) -> Select[tuple[UUID]]:
    """The ids of all parts."""
    return select(union_all(*(part.subquery().select() for part in parts)).subquery().c.id)


async def _stored(connection: AsyncConnection, query: Select[Any]) -> list[StoredConflict]:
    """The rows of a query as values, each with its statements."""
    rows = (await connection.execute(query)).all()
    ids = [row.id for row in rows]
    query = _MEMBERS.where(among(conflict_members.c.conflict_id, ids))
    members = grouped(await connection.execute(query) if ids else (), "conflict_id")
    return [_conflict(row, members[row.id]) for row in rows]


def _conflict(row: Row[Any], members: Sequence[Row[Any]]) -> StoredConflict:
    """A row of the query as a value; a resolution that was undone is left out."""
    return value_of(
        StoredConflict,
        row,
        state=ConflictState(row.state),
        # Imports of earlier releases could decide a conflict without a resolution.
        resolution=Resolution(row.resolution) if row.decided and row.resolution else None,
        resolved_by=row.resolved_by if row.decided else None,
        statements=[value_of(MemberStatement, each, memory_id=each.id) for each in members],
        resolved_at=row.resolved_at if row.decided else None,
    )


def _changes(request: ResolveRequest, standing: Sequence[Memory]) -> list[DecidedChange]:
    """The changes of a resolution. Errors: InvalidInput."""
    reason = "A person resolved the conflict."
    match request.resolution:
        case Resolution.BOTH:
            return []
        case Resolution.TEXT:
            assert request.text is not None
            return merge(standing, request.text, reason, stay_true=False)
        case Resolution.ONE:
            others = [memory for memory in standing if memory.id != request.memory_id]
            if len(others) == len(standing):
                raise InvalidInput('keep: name a memory of this conflict, or "both".')
            return retire(others, reason, into=request.memory_id)
