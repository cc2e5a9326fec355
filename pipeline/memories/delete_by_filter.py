"""Delete all memories that match a filter, as an event that can be polled and undone.

A filter with only entity ids clears whole scopes: the same transaction cancels the events that wait
in their lanes, so that older messages cannot bring memories back. Any other filter deletes the
memories that match now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Row, false, func, insert, literal, or_, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.events import EventType, StageName
from pipeline.domain.filters import Filter, of_ids_only, pinned
from pipeline.domain.lanes import Hint
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.filter_conditions import among, lanes_matching, matches
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.store import WakingStore
from pipeline.ledger.tables import (
    events,
    lanes,
    memories,
    memory_history,
    receipts,
    relations,
    summary_states,
    turn_vectors,
)
from pipeline.memories.decided import DecidedEvent, append_event
from pipeline.memories.editing import end_unstated
from pipeline.memories.rows import retire_all
from pipeline.memories.sql import statement
from pipeline.tenants.projects import keep
from pipeline.turns.vectors import mark_turns_stale

# Maximum number of memories on the receipt. The history of every deleted memory names the event.
LISTED = 1_000


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """A filter whose matches are deleted. `options` are stored with the event."""

    kind: EventType
    tree: Filter
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cleared:
    """Result of a deletion. `hints`: hints for lanes whose work was cancelled.

    `cancelled`: number of cancelled events.
    """

    event_id: UUID
    memory_ids: Sequence[UUID]
    hints: Sequence[Hint]
    cancelled: int


@dataclass(frozen=True, slots=True)
class WouldDelete:
    """Result of a dry run. `lines`: id and text of each memory, with the reason.

    `cancelled`: number of events that would be cancelled.
    """

    lines: Sequence[tuple[UUID, str, str]]
    note: str
    cancelled: int


class DeleteByFilter(WakingStore):
    """Store that deletes by filter."""

    async def clear(self, project_id: ProjectId, request: DeleteRequest) -> Cleared:
        """Retire all matches, in one transaction that also writes the event as SUCCEEDED.

        Lock order: the project, its lanes, then the memories.
        """
        async with self._engine.begin() as connection:
            return await self._clear(connection, project_id, request)

    async def rehearse(self, project_id: ProjectId, request: DeleteRequest) -> WouldDelete:
        """Return the receipt that `clear` would write: the same transaction, rolled back."""
        async with self._engine.connect() as connection:
            cleared = await self._clear(connection, project_id, request)
            lines = select(receipts).where(receipts.c.event_id == cleared.event_id)
            rows = (await connection.execute(lines.order_by(receipts.c.ordinal))).all()
            await connection.rollback()
        texts = [(row.memory_id, row.text, row.reason) for row in rows]
        return WouldDelete(texts, _note(len(cleared.memory_ids)), cleared.cancelled)

    async def _clear(
        self, connection: AsyncConnection, project_id: ProjectId, request: DeleteRequest
    ) -> Cleared:
        """Retire the matches and write the event, in the caller's transaction."""
        event_id, scope = uuid4(), Scope(project_id, **pinned(request.tree))
        whole_scopes = of_ids_only(request.tree)
        matching = lanes_matching(project_id, request.tree) if whole_scopes else false()
        await keep(connection, project_id)
        lane_ids = await _lock_lanes(connection, scope, matching)
        cancelled = await self._cancel(connection, lane_ids if whole_scopes else (), event_id)
        # A scope created at the same time is not among the locked lanes and is not cleared.
        locked = among(memories.c.lane_id, lane_ids)
        where = locked if whole_scopes else matches(project_id, request.tree, private=True)
        deleted = await retire_all(connection, where, event_id=event_id)
        if whole_scopes:
            await _forget_scopes(connection, lane_ids, event_id)
        else:
            retired = select(memory_history.c.memory_id).where(
                memory_history.c.event_id == event_id
            )
            await end_unstated(connection, memories.c.id.in_(retired), ended_by=event_id)
        event = DecidedEvent(event_id, request.kind, request.options, _note(len(deleted)))
        await append_event(connection, scope.project_id, scope.lane_id, event)
        await _write_receipt(connection, event_id)
        hints = [Hint(row.id, row.fence, StageName.EXTRACT) for row in cancelled]
        number = cancelled[0].cancelled if cancelled else 0
        return Cleared(event_id, deleted, hints, number)

    async def _cancel(
        self, connection: AsyncConnection, lane_ids: Sequence[UUID], event_id: UUID
    ) -> Sequence[Row[Any]]:
        """End the open events of these lanes. Returns a row for each lane that had any."""
        values = {
            "lane_ids": list(lane_ids),
            "why": f"Its scope was deleted before it had an effect, by event {event_id}.",
            "grace": self._grace,
        }
        return (await connection.execute(statement("cancel_lanes"), values)).all()


async def _lock_lanes(
    connection: AsyncConnection, scope: Scope, matching: ColumnElement[bool]
) -> list[UUID]:
    """Lock the matching lanes and the event's own lane. Returns the ids of the matching ones."""
    own = {"id": scope.lane_id, "state": "IDLE", **scope.ids}
    await connection.execute(postgresql.insert(lanes).values(own).on_conflict_do_nothing())
    both = or_(matching, lanes.c.id == scope.lane_id)
    rows = await lock_lanes(connection, both, matching.label("cleared"))
    return [row.id for row in rows if row.cleared]


async def _forget_scopes(connection: AsyncConnection, lane_ids: list[UUID], event_id: UUID) -> None:
    """Expire all relations of the lanes; hide their messages and summaries."""
    await connection.execute(statement("hide_turns"), {"lane_ids": lane_ids, "event_id": event_id})
    # A worker that makes a summary of the hidden messages is refused.
    await connection.execute(
        update(summary_states)
        .where(among(summary_states.c.lane_id, lane_ids))
        .values(messages=0, tokens=0, due_at=None, version=summary_states.c.version + 1)
    )
    hidden = select(events.c.id).where(among(events.c.lane_id, lane_ids))
    await mark_turns_stale(connection, turn_vectors.c.event_id.in_(hidden))
    await connection.execute(
        update(relations)
        .where(relations.c.expired_at.is_(None), among(relations.c.lane_id, lane_ids))
        .values(expired_at=func.now(), ended_by=event_id)
    )


async def _write_receipt(connection: AsyncConnection, event_id: UUID) -> None:
    """List the first deleted memories on the receipt of the event."""
    state = memory_history.c
    lines = (
        select(
            state.event_id,
            func.row_number().over(order_by=state.memory_id) - 1,
            state.event,
            state.memory_id,
            state.old_text,
            state.old_text,
            state.reason,
            literal(0),
        )
        .where(state.event_id == event_id)
        .order_by(state.memory_id)
        .limit(LISTED)
    )
    # An event of this kind withholds nothing and contradicts nothing, and has all lines at its end.
    others = ("suggestion_id", "conflict_id", "adopted_at")
    names = [column.name for column in receipts.columns if column.name not in others]
    await connection.execute(insert(receipts).from_select(names, lines))


def _note(deleted: int) -> str:
    shown = f" The receipt lists {LISTED} of them." if deleted > LISTED else ""
    return f"Memories deleted: {deleted}.{shown}"
