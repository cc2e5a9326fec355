"""Rows of memories, their history and receipts: how a memory is read, locked and written.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain import Outcome, Role, Scope
from pipeline.errors import InvalidInput, NotFound
from pipeline.ledger.changes import Change, Memory, Write, text_hash
from pipeline.ledger.schema import memories, memory_history, receipts
from pipeline.outputs import to_bytes


async def touchable(
    connection: AsyncConnection, scope: Scope, writes: Sequence[Write]
) -> list[Memory]:
    """Every memory the writes may change or collide with, locked for this transaction."""
    targets = {write.target for write in writes if write.target}
    hashes = {text_hash(text) for write in writes for text in (write.text, write.fact_text)}
    query = (
        select(memories)
        .where(
            memories.c.lane_id == scope.lane_id,
            memories.c.state == "ACTIVE",
            or_(memories.c.id.in_(targets), memories.c.text_hash.in_(hashes)),
        )
        .order_by(memories.c.id)
        .with_for_update()
    )
    return [as_memory(row) for row in (await connection.execute(query)).all()]


async def store(
    connection: AsyncConnection, changes: Sequence[Change], embedder: str
) -> tuple[UUID, ...]:
    """Write the last state of each touched memory and every state into its history."""
    last = {c.after.id: c for c in changes if c.after is not None}
    vectors = {
        c.after.id: to_bytes(c.vector)
        for c in changes
        if c.after is not None and c.vector is not None
    }
    born = {c.after.id for c in changes if c.after is not None and c.before is None}
    # Updates first, and off their texts: one of them may free the text that another one takes.
    if changed := [memory_id for memory_id in last if memory_id not in born]:
        await connection.execute(
            update(memories)
            .where(memories.c.id.in_(changed))
            .values(text_hash=func.uuid_send(memories.c.id))
        )
    for memory_id, change in last.items():
        if memory_id not in born and change.after is not None:
            values = columns(change.after)
            if memory_id in vectors:
                values |= {"embedding": vectors[memory_id], "embedder": embedder}
            await connection.execute(
                update(memories)
                .where(memories.c.id == memory_id)
                .values(**values, updated_at=func.now())
            )
    new = [
        columns(change.after) | {"embedding": vectors[memory_id], "embedder": embedder}
        for memory_id, change in last.items()
        if memory_id in born and change.after is not None
    ]
    if new:
        await connection.execute(insert(memories), new)
    for change in changes:
        if change.after is not None:
            await remember(
                connection,
                change.before,
                change.after,
                change.outcome,
                change.reason,
                event_id=change.after.event_id,
            )
    return tuple(last)


async def receipt(connection: AsyncConnection, changes: Sequence[Change]) -> None:
    """A line for each change. A replayed event's go on after those of its first run."""
    ids = {change.write.event.id for change in changes}
    last = select(receipts.c.event_id, func.max(receipts.c.ordinal)).group_by(receipts.c.event_id)
    found = await connection.execute(last.where(receipts.c.event_id.in_(ids)))
    places: dict[UUID, int] = {row[0]: row[1] for row in found}
    rows = []
    for change in changes:
        event_id = change.write.event.id
        places[event_id] = places.get(event_id, -1) + 1
        rows.append(
            {
                "event_id": event_id,
                "ordinal": places[event_id],
                "outcome": change.outcome,
                "memory_id": change.memory_id,
                "text": change.text,
                "previous_text": change.before.text if change.before else None,
                "reason": change.reason,
                "message_ordinal": change.write.message_ordinal,
            }
        )
    if rows:
        await connection.execute(insert(receipts), rows)


async def for_update(connection: AsyncConnection, project_id: UUID, memory_id: UUID) -> Memory:
    row = (
        await connection.execute(
            select(memories)
            .where(
                memories.c.project_id == project_id,
                memories.c.id == memory_id,
                memories.c.state == "ACTIVE",
            )
            .with_for_update()
        )
    ).one_or_none()
    if row is None:
        raise NotFound("Memory not found!")
    return as_memory(row)


async def refuse_twin(connection: AsyncConnection, memory: Memory, digest: bytes) -> None:
    twin = await connection.scalar(
        select(memories.c.id).where(
            memories.c.lane_id == memory.lane_id,
            memories.c.text_hash == digest,
            memories.c.state == "ACTIVE",
            memories.c.id != memory.id,
        )
    )
    if twin is not None:
        raise InvalidInput(f"Memory {twin} of the same scope already holds this text.")


async def bump(connection: AsyncConnection, before: Memory, values: Mapping[str, Any]) -> Row[Any]:
    statement = (
        update(memories)
        .where(memories.c.id == before.id)
        .values(**values, version=before.version + 1, updated_at=func.now())
        .returning(memories)
    )
    row: Row[Any] = (await connection.execute(statement)).one()
    return row


async def remember(
    connection: AsyncConnection,
    before: Memory | None,
    after: Memory,
    outcome: Outcome,
    reason: str,
    *,
    event_id: UUID | None = None,
    undoes: UUID | None = None,
) -> None:
    """Write a new state into the memory's history; `event_id` is None where a person did
    it, or an undo.
    """
    await connection.execute(
        insert(memory_history).values(
            memory_id=after.id,
            version=after.version,
            project_id=after.scope.project_id,
            event=outcome,
            old_text=before.text if before else None,
            new_text=after.text if after.state == "ACTIVE" else None,
            metadata=after.metadata,
            expiration_date=after.expiration_date,
            reason=reason,
            event_id=event_id,
            message_ordinal=after.message_ordinal if event_id else None,
            undoes=undoes,
            valid_from=after.valid_from,
        )
    )


def columns(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "project_id": memory.scope.project_id,
        "lane_id": memory.lane_id,
        "user_id": memory.scope.user_id,
        "agent_id": memory.scope.agent_id,
        "app_id": memory.scope.app_id,
        "run_id": memory.scope.run_id,
        "text": memory.text,
        "text_hash": text_hash(memory.text),
        "metadata": memory.metadata,
        "attributed_to": memory.attributed_to,
        "state": memory.state,
        "immutable": memory.immutable,
        "expiration_date": memory.expiration_date,
        "version": memory.version,
        "event_id": memory.event_id,
        "message_ordinal": memory.message_ordinal,
        "valid_from": memory.valid_from,
    }


def as_memory(row: Row[Any]) -> Memory:
    return Memory(
        id=row.id,
        lane_id=row.lane_id,
        scope=Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id),
        text=row.text,
        metadata=row.metadata,
        attributed_to=Role(row.attributed_to),
        state=row.state,
        immutable=row.immutable,
        expiration_date=row.expiration_date,
        version=row.version,
        event_id=row.event_id,
        message_ordinal=row.message_ordinal,
        valid_from=row.valid_from,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
