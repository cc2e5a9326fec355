"""Restore of a memory to an earlier version, as a new version."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, InvalidInput, NotFound
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory, structure_from
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.locks import locked
from pipeline.ledger.row_values import columns_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memories, memory_history, past_states
from pipeline.memories.editing import end_unsaid, lock_lanes_of, refusal_of
from pipeline.memories.rows import as_memory, holder_of, next_version, text_columns, write_history
from pipeline.text.times.past import current_slot


class Restore(LedgerStore):
    """Store that restores versions."""

    async def text(self, project_id: ProjectId, memory_id: UUID, version: int) -> str:
        """The text of a version. Errors: NotFound; InvalidInput for a version without a text."""
        async with self._engine.connect() as connection:
            text: str = (await _state(connection, project_id, memory_id, version)).new_text
            return text

    async def restore(
        self,
        project_id: ProjectId,
        memory_id: UUID,
        version: int,
        *,
        reason: str | None,
        vector: Vector,
        embedder: str,
        key_id: UUID | None,
    ) -> Memory:
        """Give the memory the state of a version, also if it was deleted since.

        Its relations whose target the text no longer gives expire; none is restored.
        `vector`: that of `text`. Errors: NotFound; InvalidInput for an immutable memory and for the
        current version; Conflict if another memory of the scope has the text, or if a replay has
        replaced the memory.
        """
        mine = and_(memories.c.project_id == project_id, memories.c.id == memory_id)
        try:
            async with self._engine.begin() as connection:
                await lock_lanes_of(connection, project_id, [memory_id])
                row = (await connection.execute(locked(memories, mine, *memories.c))).one_or_none()
                if row is None:
                    raise NotFound("Memory not found!")
                state = await _state(connection, project_id, memory_id, version)
                _refuse(row, version)
                before = as_memory(row)
                values = _columns(state)
                if holder := await holder_of(connection, before, values["text_hash"]):
                    raise Conflict(f"Memory {holder} has this text now: change or delete it first.")
                values |= {"embedding": to_bytes(vector), "embedder": embedder}
                await end_unsaid(connection, [memory_id], before.text, state.new_text)
                after = as_memory(await next_version(connection, before, values))
                active = before.state == "ACTIVE"
                await write_history(
                    connection,
                    before if active else None,
                    after,
                    Outcome.UPDATE if active else Outcome.ADD,
                    f"Restored to version {version}." + (f" {reason}" if reason else ""),
                    key_id=key_id,
                )
                return after
        except IntegrityError as error:
            raise refusal_of(error) from None


async def _state(
    connection: AsyncConnection, project_id: ProjectId, memory_id: UUID, version: int
) -> Row[Any]:
    """Read a version from the history, with the values that only its past state has."""
    history, past = memory_history, past_states
    same = and_(past.c.memory_id == history.c.memory_id, past.c.version == history.c.version)
    query = (
        select(
            history,
            past.c.categories,
            past.c.event_id.label("source_id"),
            past.c.message_ordinal.label("source_ordinal"),
        )
        .outerjoin(past, same)
        .where(
            history.c.project_id == project_id,
            history.c.memory_id == memory_id,
            history.c.version == version,
        )
        .order_by(past.c.stored_at.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound(f"This memory has no version {version}.")
    if row.new_text is None:
        raise InvalidInput(f"Version {version} has no text: it records a deletion.")
    return row


def _refuse(row: Row[Any], version: int) -> None:
    """Refuse what cannot be restored. Errors: InvalidInput; Conflict."""
    if row.immutable:
        raise InvalidInput(f"Memory {row.id} is immutable: delete it and add a new one.")
    if row.replaced_by is not None:
        raise Conflict(f"Replay {row.replaced_by} has replaced this memory.")
    if row.version == version:
        raise InvalidInput(f"Version {version} is the current one.")


def _columns(state: Row[Any]) -> dict[str, Any]:
    """The columns of a restored memory."""
    values = structure_from(state.structure)
    columns = {
        **values,
        **text_columns(state.new_text),
        "slot": current_slot(values["subject"], values["attribute"], state.new_text),
        "state": "ACTIVE",
        "superseded_by": None,
        "forgotten_at": None,
        **columns_of(state, "metadata", "expiration_date", "valid_from"),
        "said_at": state.said_at or state.valid_from,
    }
    if state.categories is not None:
        columns["categories"] = state.categories
    if state.source_id is not None:
        columns |= {"event_id": state.source_id, "message_ordinal": state.source_ordinal}
    return columns
