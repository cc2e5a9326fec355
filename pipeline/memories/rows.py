"""Functions on rows of `memories` and `memory_history`, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Uuid,
    and_,
    false,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.facts import Outcome
from pipeline.domain.memories import STRUCTURE, Memory, structure, structure_from
from pipeline.domain.messages import Role
from pipeline.domain.rollback import PastState
from pipeline.domain.scope import Scope
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import locked
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.tables import memories, memory_history
from pipeline.memories.sql import statement
from pipeline.text import terms
from pipeline.text.equality import text_hash

# The open conflict of a row of `memories`, as the column `conflict_id`.
open_conflict: ColumnElement[Any] = literal_column(
    str(statement("open_conflict")), type_=Uuid
).label("conflict_id")

# The open suggestion about a row of `memories`, as the column `suggestion_id`.
open_suggestion: ColumnElement[Any] = literal_column(
    str(statement("open_suggestion")), type_=Uuid
).label("suggestion_id")


async def holder_of(connection: AsyncConnection, memory: Memory, digest: bytes) -> UUID | None:
    """Id of another active memory of the same scope with this text hash, or None."""
    holder: UUID | None = await connection.scalar(
        select(memories.c.id).where(
            memories.c.lane_id == memory.lane_id,
            memories.c.text_hash == digest,
            memories.c.state == "ACTIVE",
            memories.c.id != memory.id,
        )
    )
    return holder


async def next_version(
    connection: AsyncConnection, before: Memory, values: Mapping[str, Any]
) -> Row[Any]:
    """Update a memory's columns and increment its version. Returns the new row."""
    query = (
        update(memories)
        .where(memories.c.id == before.id)
        .values(**values, version=before.version + 1, updated_at=func.now())
        .returning(memories)
    )
    row: Row[Any] = (await connection.execute(query)).one()
    return row


async def write_history(
    connection: AsyncConnection,
    before: Memory | None,
    after: Memory,
    outcome: Outcome,
    reason: str,
    *,
    event_id: UUID | None = None,
    undoes: UUID | None = None,
    key_id: UUID | None = None,
) -> None:
    """Write a new state to the memory's history, and queue it for the project's webhooks.

    `event_id`: None for a change by a user or an undo. `key_id`: the API key of the request.
    """
    temporary = select(memories.c.temporary).where(memories.c.id == after.id).scalar_subquery()
    await connection.execute(
        insert(memory_history).values(
            memory_id=after.id,
            version=after.version,
            project_id=after.scope.project_id,
            event=outcome,
            old_text=before.text if before else None,
            new_text=after.text if after.state == "ACTIVE" else None,
            **columns_of(after, "metadata", "expiration_date", "said_at", "valid_from"),
            reason=reason,
            event_id=event_id,
            message_ordinal=after.message_ordinal if event_id else None,
            undoes=undoes,
            key_id=key_id,
            structure=structure(after),
            temporary=func.coalesce(temporary, false()),
        )
    )
    await connection.execute(statement("queue_deliveries"), {"memory_ids": [after.id]})


async def retire_all(
    connection: AsyncConnection,
    where: ColumnElement[bool],
    *,
    event_id: UUID | None = None,
    key_id: UUID | None = None,
) -> list[UUID]:
    """Retire all matching active memories by request, with their history. Returns their ids.

    Events that were accepted before do not learn their texts again.
    """
    matching = locked(memories, and_(memories.c.state == "ACTIVE", where))
    retired = (
        update(memories)
        .where(memories.c.id.in_(matching))
        .values(
            state="RETIRED",
            version=memories.c.version + 1,
            updated_at=func.now(),
            forgotten_at=func.now(),
        )
        .returning(memories)
        .cte("retired")
    )
    state = {
        "memory_id": retired.c.id,
        "event": literal(Outcome.DELETE.value),
        "old_text": retired.c.text,
        "reason": literal("Deleted by request."),
        "event_id": literal(event_id, Uuid),
        "key_id": literal(key_id, Uuid),
        **columns_of(retired.c, "version", "project_id", "temporary"),
        **columns_of(retired.c, "metadata", "expiration_date", "said_at", "valid_from"),
    }
    history = insert(memory_history).from_select(list(state), select(*state.values()))
    ids = (await connection.scalars(history.returning(memory_history.c.memory_id))).all()
    await connection.execute(statement("queue_deliveries"), {"memory_ids": ids})
    return list(ids)


async def states_of(
    connection: AsyncConnection, memory_ids: Sequence[UUID]
) -> dict[UUID, list[PastState]]:
    """All states of each memory, oldest first, by the memory's id."""
    table = memory_history.c
    query = (
        select(memory_history)
        .where(among(table.memory_id, memory_ids))
        .order_by(table.memory_id, table.version)
    )
    states: dict[UUID, list[PastState]] = {memory_id: [] for memory_id in memory_ids}
    for row in await connection.execute(query):
        states[row.memory_id].append(_state(row))
    return states


def _state(row: Row[Any]) -> PastState:
    """Build a state from a row of `memory_history`."""
    return value_of(
        PastState,
        row,
        text=row.new_text,
        # Releases before these columns kept the time of the statement in `valid_from`.
        said_at=row.said_at or row.valid_from,
        structure=structure_from(row.structure),
    )


def text_columns(text: str) -> dict[str, Any]:
    """The columns of a text and of values derived from it, which must be written together."""
    return {"text": text, "text_hash": text_hash(text), "terms": terms.terms(text)}


def as_memory(row: Row[Any]) -> Memory:
    """A row of `memories` as a value.

    Its conflict and its suggestion are known if the query has `open_conflict`, `open_suggestion`.
    """
    return value_of(
        Memory,
        row,
        scope=Scope.of(row),
        attributed_to=Role(row.attributed_to),
        categories=tuple(row.categories),
        conflict_id=getattr(row, "conflict_id", None),
        suggestion_id=getattr(row, "suggestion_id", None),
        **structure_from({name: getattr(row, name) for name in STRUCTURE}),
    )
