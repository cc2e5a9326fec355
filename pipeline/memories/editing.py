"""Edits and deletions of memories by users. Each call is one transaction.

A deleted memory disappears from all reads at once, together with the relations that no other
memory states. Its history stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.consolidation.conservation import same_attribute
from pipeline.domain.errors import ChangedSince, Conflict, InvalidInput, NotFound
from pipeline.domain.facts import Outcome
from pipeline.domain.graph.names import still_gives
from pipeline.domain.memories import SLOT, Memory
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector, to_bytes
from pipeline.ledger.failures import is_taken_text
from pipeline.ledger.filter_conditions import among, looked_up
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, lanes, memories, relations
from pipeline.memories.rows import (
    as_memory,
    holder_of,
    next_version,
    retire_all,
    text_columns,
    write_history,
)
from pipeline.text.names import says

TEXT_TAKEN = "Another write has just stored this text in the same scope; read it and ask again."


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """An edit of one memory. `values`: columns to change. `vector`: embedding of a new text.

    `version`: the version that the edit expects, for an optimistic lock; None: any.
    """

    memory_id: UUID
    values: Mapping[str, Any] = field(default_factory=dict)
    vector: Vector | None = field(default=None, compare=False)
    version: int | None = None


class MemoryEditing(LedgerStore):
    """Store of edits by users."""

    async def edit(
        self,
        project_id: ProjectId,
        edits: Sequence[MemoryEdit],
        *,
        embedder: str,
        key_id: UUID | None = None,
    ) -> list[Memory]:
        """Change memories and write their old states to the history. Returns them in order.

        Two memories of a scope can get the same text this way. `key_id`: the caller's API key.
        Errors: NotFound; InvalidInput for an immutable memory; ChangedSince if a memory has another
        version than its edit expects; Conflict if another write stored the text at the same time.
        """
        try:
            async with self._engine.begin() as connection:
                locked_ids = [edit.memory_id for edit in edits]
                before = await lock_memories(connection, project_id, locked_ids)
                _refuse(edits, before)
                # Release all texts first: one memory can get the text of another one.
                await _release_texts(connection, [e.memory_id for e in edits if "text" in e.values])
                return [
                    await _change(connection, before[edit.memory_id], edit, embedder, key_id)
                    for edit in edits
                ]
        except IntegrityError as error:
            raise refusal_of(error) from None

    async def retire(
        self, project_id: ProjectId, memory_ids: Sequence[UUID], *, key_id: UUID | None = None
    ) -> None:
        """Retire memories, which takes them out of all reads. Errors: NotFound; none is retired."""
        async with self._engine.begin() as connection:
            await lock_memories(connection, project_id, memory_ids)
            these = among(memories.c.id, memory_ids)
            await retire_all(connection, these, key_id=key_id)
            await end_unstated(connection, these)


def refusal_of(error: IntegrityError) -> Exception:
    """Conflict if another write stored the text at the same time; else the error itself."""
    return Conflict(TEXT_TAKEN) if is_taken_text(error) else error


async def lock_lanes_of(
    connection: AsyncConnection, project_id: ProjectId, memory_ids: Sequence[UUID]
) -> None:
    """Lock the lanes of memories, before the memories themselves.

    So changes of one scope by people follow each other: a change of two memories marks their
    suggestions and conflicts in the order of the memories, which may be another one for others.
    """
    these = and_(memories.c.project_id == project_id, among(memories.c.id, memory_ids))
    await lock_lanes(connection, looked_up(lanes.c.id, select(memories.c.lane_id).where(these)))


async def lock_memories(
    connection: AsyncConnection, project_id: ProjectId, memory_ids: Sequence[UUID]
) -> dict[UUID, Memory]:
    """Lock the lanes, then lock and read memories, by id. Errors: NotFound if one is missing."""
    await lock_lanes_of(connection, project_id, memory_ids)
    by_id = await lock_active(connection, project_id, memory_ids)
    if missing := [str(memory_id) for memory_id in memory_ids if memory_id not in by_id]:
        which = f" Nothing was changed; unknown: {', '.join(missing)}."
        raise NotFound("Memory not found!" + (which if len(memory_ids) > 1 else ""))
    return by_id


async def lock_active(
    connection: AsyncConnection, project_id: ProjectId, memory_ids: Sequence[UUID]
) -> dict[UUID, Memory]:
    """Lock and read those of the project's memories that are active, by id. Lock the lane first."""
    current = and_(
        memories.c.project_id == project_id,
        among(memories.c.id, memory_ids),
        memories.c.state == "ACTIVE",
    )
    rows = await connection.execute(locked(memories, current, *memories.c))
    return {row.id: as_memory(row) for row in rows}


async def end_unstated(
    connection: AsyncConnection,
    retired: ColumnElement[bool],
    *,
    ended_by: UUID | None = None,
    keep: Collection[UUID] = (),
) -> None:
    """Expire relations that the retired memories state, or memories that are merged into them.

    `keep`: memories whose relations stay. A relation of an earlier release names no memory: it
    expires once its event has no active one.
    """
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
    sources = select(memories.c.event_id, memories.c.lane_id).where(
        retired, memories.c.event_id.is_not(None)
    )
    of_event = and_(
        relations.c.memory_id.is_(None),
        tuple_(relations.c.event_id, relations.c.lane_id).in_(sources),
        ~stated,
    )
    gone = select(memories.c.id, memories.c.lane_id).where(retired)
    merged = memories.alias("merged")
    into_gone = select(merged.c.id, merged.c.lane_id).where(
        tuple_(merged.c.superseded_by, merged.c.lane_id).in_(gone)
    )
    stated_by = tuple_(relations.c.memory_id, relations.c.lane_id)
    of_memory = and_(
        or_(stated_by.in_(gone), stated_by.in_(into_gone)),
        ~among(relations.c.memory_id, keep),
    )
    for unstated in (of_memory, of_event):
        await connection.execute(
            update(relations)
            .where(relations.c.expired_at.is_(None), unstated)
            .values(expired_at=func.now(), ended_by=ended_by)
        )


async def end_unsaid(
    connection: AsyncConnection,
    memory_ids: Collection[UUID],
    before: str,
    after: str,
    *,
    ended_by: UUID | None = None,
) -> None:
    """Expire relations of these memories whose target only the text before a person's change gives.

    A text that denies what the former one says gives it no longer, and the other way round.
    """
    its_memory = and_(
        memories.c.id == relations.c.memory_id, memories.c.lane_id == relations.c.lane_id
    )
    stated = (
        select(relations.c.id, entities.c.name)
        .join(entities, entities.c.id == relations.c.destination_id)
        .join(memories, its_memory)
        .where(among(relations.c.memory_id, memory_ids), relations.c.expired_at.is_(None))
    )
    rows = (await connection.execute(stated)).all()
    unsaid = [
        row.id
        for row in rows
        if says(before, row.name) and not still_gives(before, after, row.name)
    ]
    if unsaid:
        await connection.execute(
            update(relations)
            .where(among(relations.c.id, unsaid))
            .values(expired_at=func.now(), ended_by=ended_by)
        )


def _refuse(edits: Sequence[MemoryEdit], before: Mapping[UUID, Memory]) -> None:
    """Refuse edits of immutable memories, and of others than they expect."""
    for memory in before.values():
        if memory.immutable:
            raise InvalidInput(f"Memory {memory.id} is immutable: delete it and add a new one.")
    for edit in edits:
        version = before[edit.memory_id].version
        if edit.version not in (None, version):
            raise ChangedSince(
                f"Memory {edit.memory_id} has version {version} now, not {edit.version}."
                " Nothing was changed: read it again, and send the version that you see."
            )


async def _release_texts(connection: AsyncConnection, memory_ids: Sequence[UUID]) -> None:
    """Replace the text hash, which is unique in a lane, by the memory's id."""
    await connection.execute(
        update(memories)
        .where(among(memories.c.id, memory_ids))
        .values(text_hash=func.uuid_send(memories.c.id))
    )


async def _change(
    connection: AsyncConnection,
    before: Memory,
    edit: MemoryEdit,
    embedder: str,
    key_id: UUID | None,
) -> Memory:
    """Apply one edit to its locked memory, and write the history."""
    changed = dict(edit.values)
    if "text" in changed:
        await end_unsaid(connection, [before.id], before.text, changed["text"])
        changed |= text_columns(changed["text"])
        if await holder_of(connection, before, changed["text_hash"]):
            del changed["text_hash"]  # keep the hash from _release_texts: it must be unique
        # The values of the old text say nothing about a text on another matter.
        if not same_attribute(before.text, changed["text"]):
            changed |= dict.fromkeys((*SLOT, "slot"))
        changed["confidence"] = None
        vector = NO_VECTOR if edit.vector is None else edit.vector
        changed |= {"embedding": to_bytes(vector), "embedder": embedder, "edited_at": func.now()}
    after = as_memory(await next_version(connection, before, changed))
    reason = _reason(edit)
    await write_history(connection, before, after, Outcome.UPDATE, reason, key_id=key_id)
    return after


def _reason(edit: MemoryEdit) -> str:
    """The reason of an edit, for the history."""
    if edit.values.keys() == {"pinned"}:
        return "Pinned by request." if edit.values["pinned"] else "Unpinned by request."
    return "Edited by request."
