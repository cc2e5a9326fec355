"""Changes that a person has decided, written as an event with its receipt.

The event is appended to its lane as SUCCEEDED, so it can be read and undone like an add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import case, func, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.consolidation.decided import DecidedChange
from pipeline.domain.errors import Conflict
from pipeline.domain.events import EventType, Status
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory, structure
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.row_values import columns_of
from pipeline.ledger.tables import events, lanes, memories, receipts
from pipeline.memories.editing import end_unsaid, end_unstated
from pipeline.memories.rows import as_memory, holder_of, next_version, text_columns, write_history
from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class DecidedEvent:
    """The event that records a decision. `options` name what was decided.

    `edited`: a person wrote the new text, so no model changes it from then on.
    """

    id: UUID
    kind: EventType
    options: Mapping[str, Any]
    note: str
    suggestion_id: UUID | None = None
    edited: bool = False


async def write_decided(
    connection: AsyncConnection,
    project_id: ProjectId,
    lane_id: UUID,
    event: DecidedEvent,
    changes: Sequence[DecidedChange],
    *,
    vector: Vector | None,
    embedder: str,
) -> None:
    """Write the changes, their history, the event and its receipt. The caller holds the locks.

    `vector`: embedding of the one new text. Errors: Conflict if another memory of the scope has the
    text already, or if the memory is immutable.
    """
    for change in changes:
        if change.outcome is not Outcome.NOOP:
            await _write(connection, event, change, changes, vector, embedder)
    await _end_relations(connection, changes, ended_by=event.id)
    await append_event(connection, project_id, lane_id, event)
    lines = [_line(event, place, change) for place, change in enumerate(changes)]
    if lines:
        await connection.execute(insert(receipts), lines)


async def _write(
    connection: AsyncConnection,
    event: DecidedEvent,
    change: DecidedChange,
    changes: Sequence[DecidedChange],
    vector: Vector | None,
    embedder: str,
) -> None:
    """Write one new state and its history."""
    before, after = change.before, change.after
    values: dict[str, Any] = {"state": after.state, "superseded_by": after.superseded_by}
    if change.outcome is Outcome.UPDATE:
        if before.immutable:
            raise Conflict(f"Memory {before.id} is immutable: it can be deleted, not changed.")
        values |= _columns(after)
    if after.text != before.text:
        holder = await holder_of(connection, after, text_hash(after.text))
        if holder is not None and holder not in {c.before.id for c in changes}:
            raise Conflict(f"Memory {holder} has this text already.")
        assert vector is not None
        values |= text_columns(after.text)
        values |= {"embedding": to_bytes(vector), "embedder": embedder}
        values |= {"edited_at": func.now()} if event.edited else {}
    row = await next_version(connection, before, values)
    written = as_memory(row)
    await write_history(
        connection, before, written, change.outcome, change.reason, event_id=event.id
    )


def _columns(after: Memory) -> dict[str, Any]:
    """The columns of a changed memory, besides its text."""
    return {
        **structure(after),
        "slot": after.slot,
        "categories": list(after.categories),
        **columns_of(after, "metadata", "expiration_date", "said_at", "valid_from"),
        **columns_of(after, "event_id", "message_ordinal", "attributed_to"),
    }


async def _end_relations(
    connection: AsyncConnection, changes: Sequence[DecidedChange], *, ended_by: UUID
) -> None:
    """Expire the relations of statements that no longer hold, and of no other memory.

    The relations of the statement that a merged memory takes over stay if its new text says them.
    """
    standing = {_statement(c.after) for c in changes if c.after.state == "ACTIVE"}
    false = [change.before for change in changes if not change.stays_true]
    carried = {memory.id for memory in false if _statement(memory) in standing}
    retired = among(memories.c.id, [memory.id for memory in false if memory.id not in carried])
    await end_unstated(connection, retired, ended_by=ended_by, keep=carried)
    texts = {_statement(c.after): c.after.text for c in changes if c.after.state == "ACTIVE"}
    for memory in false:
        if memory.id in carried:
            text = texts[_statement(memory)]
            await end_unsaid(connection, [memory.id], memory.text, text, ended_by=ended_by)


def _statement(memory: Memory) -> tuple[UUID | None, int | None]:
    """The message of a memory's statement, which a merged memory takes over from the newest one."""
    return memory.event_id, memory.message_ordinal


async def append_event(
    connection: AsyncConnection, project_id: ProjectId, lane_id: UUID, event: DecidedEvent
) -> None:
    """Append the event to its lane as SUCCEEDED. The caller holds the lane's lock."""
    tail = lanes.c.accepted_seq + 1
    seq = await connection.scalar(
        update(lanes)
        .where(lanes.c.id == lane_id)
        .values(
            accepted_seq=tail,
            settled_seq=case((lanes.c.state == "IDLE", tail), else_=lanes.c.settled_seq),
            next_curation_at=func.coalesce(lanes.c.next_curation_at, func.now()),
        )
        .returning(lanes.c.accepted_seq)
    )
    await connection.execute(
        insert(events).values(
            id=event.id,
            project_id=project_id,
            lane_id=lane_id,
            seq=seq,
            event_type=event.kind,
            status=Status.SUCCEEDED,
            options=event.options,
            tokens=0,
            note=event.note,
            started_at=func.now(),
            completed_at=func.now(),
        )
    )


def _line(event: DecidedEvent, place: int, change: DecidedChange) -> dict[str, Any]:
    return {
        "event_id": event.id,
        "ordinal": place,
        "outcome": change.outcome,
        "memory_id": change.before.id,
        "text": change.after.text,
        "previous_text": change.before.text,
        "reason": change.reason,
        "message_ordinal": 0,
        "suggestion_id": event.suggestion_id,
    }
