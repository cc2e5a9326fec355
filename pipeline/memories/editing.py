"""What people do to memories: edit and retire. A call is one transaction: all of it, or nothing.

What a person deletes is out of every read at once, with the relations that nothing else states;
its history stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import Conflict, InvalidInput, NotFound
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector, to_bytes
from pipeline.ledger.locks import locked
from pipeline.ledger.tables import memories, relations
from pipeline.memories.rows import as_memory, bump, holder_of, remember, retire_all, text_columns

TEXT_TAKEN = "Another write has just stored this text in the same scope; read it and ask again."


@dataclass(frozen=True, slots=True)
class Edit:
    """`values` are the columns to change; `vector` goes with a new text."""

    memory_id: UUID
    values: Mapping[str, Any] = field(default_factory=dict)
    vector: Vector | None = field(default=None, compare=False)


class Editing:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def edit(
        self, project_id: ProjectId, edits: Sequence[Edit], *, embedder: str
    ) -> list[Memory]:
        """The memories as changed, in the order asked; their old states go to the history.

        A text that another memory of the scope holds is stored all the same.
        Errors: NotFound; InvalidInput for an immutable memory.
        """
        try:
            async with self._engine.begin() as connection:
                held = await hold(connection, project_id, [edit.memory_id for edit in edits])
                _refuse_immutable(held.values())
                # All off their texts first: one of them may take the text that another one leaves.
                await _let_go(connection, [e.memory_id for e in edits if "text" in e.values])
                return [
                    await _change(connection, held[edit.memory_id], edit, embedder)
                    for edit in edits
                ]
        except IntegrityError:
            raise Conflict(TEXT_TAKEN) from None

    async def retire(self, project_id: ProjectId, memory_ids: Sequence[UUID]) -> None:
        """Take these memories out of every read. Errors: NotFound, and none is retired."""
        async with self._engine.begin() as connection:
            await hold(connection, project_id, memory_ids)
            these = memories.c.id.in_(memory_ids)
            await retire_all(connection, these, reason="Deleted by request.")
            await end_unstated(connection, these)


async def hold(
    connection: AsyncConnection, project_id: ProjectId, memory_ids: Sequence[UUID]
) -> dict[UUID, Memory]:
    """These memories, locked for this transaction. Errors: NotFound where one is missing."""
    current = and_(
        memories.c.project_id == project_id,
        memories.c.id.in_(memory_ids),
        memories.c.state == "ACTIVE",
    )
    rows = await connection.execute(locked(memories, current, *memories.c))
    held = {row.id: as_memory(row) for row in rows}
    if missing := [str(one) for one in memory_ids if one not in held]:
        which = f" Nothing was changed; unknown: {', '.join(missing)}."
        raise NotFound("Memory not found!" + (which if len(memory_ids) > 1 else ""))
    return held


async def end_unstated(
    connection: AsyncConnection, gone: ColumnElement[bool], *, ended_by: UUID | None = None
) -> None:
    """Expire the relations read from events of which the retired memories were the last."""
    stating = memories.alias("stating")
    stated = (
        select(stating.c.id)
        .where(
            stating.c.lane_id == relations.c.lane_id,
            stating.c.event_id == relations.c.event_id,
            stating.c.state == "ACTIVE",
        )
        .exists()
    )
    told = select(memories.c.event_id).where(gone, memories.c.event_id.is_not(None))
    await connection.execute(
        update(relations)
        .where(relations.c.expired_at.is_(None), relations.c.event_id.in_(told), ~stated)
        .values(expired_at=func.now(), ended_by=ended_by)
    )


def _refuse_immutable(held: Iterable[Memory]) -> None:
    for memory in held:
        if memory.immutable:
            raise InvalidInput(f"Memory {memory.id} is immutable: delete it and add a new one.")


async def _let_go(connection: AsyncConnection, memory_ids: Sequence[UUID]) -> None:
    await connection.execute(
        update(memories)
        .where(memories.c.id.in_(memory_ids))
        .values(text_hash=func.uuid_send(memories.c.id))
    )


async def _change(connection: AsyncConnection, before: Memory, edit: Edit, embedder: str) -> Memory:
    changed = dict(edit.values)
    if "text" in changed:
        changed |= text_columns(changed["text"])
        if await holder_of(connection, before, changed["text_hash"]):
            del changed["text_hash"]  # it keeps the one from _let_go: no two may be equal
        vector = NO_VECTOR if edit.vector is None else edit.vector
        changed |= {"embedding": to_bytes(vector), "embedder": embedder}
    after = as_memory(await bump(connection, before, changed))
    await remember(connection, before, after, Outcome.UPDATE, "Edited by request.")
    return after
