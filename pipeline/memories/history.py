"""History of memories: every state and the cause of each change, also after a DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, false, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import EventType
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import count_near
from pipeline.ledger.excerpts import SHOWN_CHARACTERS
from pipeline.ledger.filter_conditions import shown
from pipeline.ledger.tables import (
    api_keys,
    events,
    memories,
    memory_history,
    messages,
    receipts,
)

# Maximum size of the texts in one answer with a memory's history.
LARGEST_BYTES = 4_000_000


class AuthorKind(StrEnum):
    """Origin of a change. EVENT: an add, or a delete of all that match. API: a person's request."""

    EVENT = "event"
    API = "api"
    UNDO = "undo"
    REPLAY = "replay"
    SUGGESTION = "suggestion"


@dataclass(frozen=True, slots=True)
class Author:
    """Author of a change.

    `event_id`: the event, or the one that was undone. `key`: name of the API key of a request.
    """

    kind: AuthorKind
    event_id: UUID | None = None
    key: str | None = None
    suggestion_id: UUID | None = None
    replay_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A state of a memory. `message`: the message it was extracted from, or None.

    It was stored at `created_at`.
    """

    memory_id: UUID
    version: int
    scope: Scope
    event: str
    old_text: str | None
    new_text: str | None
    metadata: dict[str, Any]
    categories: Sequence[str]
    reason: str | None
    event_id: UUID | None
    message: dict[str, str] | None
    author: Author
    said_at: datetime
    valid_from: datetime
    created_at: datetime


class MemoryHistory:
    """Store of the states of memories."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def of(self, project_id: ProjectId, memory_id: UUID) -> list[HistoryEntry]:
        """All states of a memory, oldest first; empty for an unknown id.

        If the history is larger than LARGEST_BYTES: only the newest states.
        """
        this = and_(_mine(project_id), memory_history.c.memory_id == memory_id)
        texts = (memory_history.c.old_text, memory_history.c.new_text)
        size = sum(func.coalesce(func.octet_length(text), 0) for text in texts)
        newer = func.sum(size).over(order_by=memory_history.c.version.desc())
        sizes = select(memory_history.c.version, newer.label("newer")).where(this).subquery()
        light = select(sizes.c.version).where(sizes.c.newer <= LARGEST_BYTES)
        query = _with_message(this).where(memory_history.c.version.in_(light))
        return await self._entries(query.order_by(memory_history.c.version))

    async def feed(
        self, project_id: ProjectId, *, limit: int, offset: int
    ) -> tuple[list[HistoryEntry], int]:
        """A page of changes in the project, newest first, with shortened texts, and their number.

        The number is approximate for far pages: see `count_near`.
        """
        table = memory_history.c
        # For each row of the page: as a join, it would read all memories of the project.
        visible = select(shown(memories)).where(memories.c.id == table.memory_id).scalar_subquery()
        mine = select(table.memory_id, table.version).where(
            _mine(project_id), visible.is_not(false())
        )
        order = (table.created_at.desc(), table.memory_id, table.version.desc())
        # Select the page from the index alone, before the joins.
        page = mine.order_by(*order).limit(limit).offset(offset).subquery("page")
        this = tuple_(table.memory_id, table.version).in_(select(page))
        count = await count_near(self._engine, mine, limit=limit, offset=offset)
        entries = await self._entries(_with_message(this).order_by(*order))
        return [_excerpt(entry) for entry in entries], count

    async def inputs(
        self, project_id: ProjectId, memory_ids: Sequence[UUID]
    ) -> dict[UUID, dict[str, str]]:
        """The message from which each memory was last extracted, by the memory's id."""
        source = and_(
            messages.c.lane_id == events.c.lane_id,
            messages.c.seq == events.c.seq,
            messages.c.ordinal == memories.c.message_ordinal,
        )
        query = (
            select(memories.c.id, messages.c.role, messages.c.content)
            .join(events, events.c.id == memories.c.event_id)
            .join(messages, source)
            .where(memories.c.project_id == project_id, memories.c.id.in_(memory_ids))
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return {row.id: {"role": row.role, "content": row.content} for row in rows}

    async def _entries(self, query: Select[Any]) -> list[HistoryEntry]:
        async with self._engine.connect() as connection:
            return [_entry(row) for row in (await connection.execute(query)).all()]


def _mine(project_id: ProjectId) -> ColumnElement[bool]:
    return memory_history.c.project_id == project_id


def _with_message(where: ColumnElement[bool]) -> Select[Any]:
    """States with their memory's entity ids and the message each was extracted from."""
    message = and_(
        messages.c.lane_id == events.c.lane_id,
        messages.c.seq == events.c.seq,
        messages.c.ordinal == memory_history.c.message_ordinal,
    )
    ids = (memories.c.user_id, memories.c.agent_id, memories.c.app_id, memories.c.run_id)
    accepted = (
        select(receipts.c.suggestion_id)
        .where(
            receipts.c.event_id == memory_history.c.event_id,
            receipts.c.memory_id == memory_history.c.memory_id,
            receipts.c.outcome == memory_history.c.event,
            events.c.event_type != EventType.ADD,
        )
        .limit(1)
        .scalar_subquery()
    )
    return (
        select(
            memory_history,
            *ids,
            memories.c.categories,
            memories.c.replaced_by,
            messages.c.role,
            messages.c.content,
            api_keys.c.name.label("key_name"),
            accepted.label("suggestion_id"),
        )
        .join(memories, memories.c.id == memory_history.c.memory_id)
        .outerjoin(events, events.c.id == memory_history.c.event_id)
        .outerjoin(messages, message)
        .outerjoin(api_keys, api_keys.c.id == memory_history.c.key_id)
        .where(where)
    )


def _excerpt(entry: HistoryEntry) -> HistoryEntry:
    message = entry.message and {
        **entry.message,
        "content": entry.message["content"][:SHOWN_CHARACTERS],
    }
    return replace(
        entry,
        old_text=entry.old_text and entry.old_text[:SHOWN_CHARACTERS],
        new_text=entry.new_text and entry.new_text[:SHOWN_CHARACTERS],
        message=message,
    )


def _entry(row: Row[Any]) -> HistoryEntry:
    """Build an entry from a row of `_with_message`."""
    return HistoryEntry(
        memory_id=row.memory_id,
        version=row.version,
        scope=Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id),
        event=row.event,
        old_text=row.old_text,
        new_text=row.new_text,
        metadata=row.metadata,
        categories=row.categories,
        reason=row.reason,
        event_id=row.event_id,
        message={"role": row.role, "content": row.content} if row.role else None,
        author=_author(row),
        said_at=row.said_at or row.valid_from,
        valid_from=row.valid_from,
        created_at=row.created_at,
    )


def _author(row: Row[Any]) -> Author:
    if row.undoes:
        return Author(AuthorKind.UNDO, row.undoes, row.key_name)
    if row.suggestion_id:
        return Author(AuthorKind.SUGGESTION, row.event_id, suggestion_id=row.suggestion_id)
    if row.event_id:
        return Author(AuthorKind.EVENT, row.event_id)
    if row.replaced_by and row.reason == replaced(row.replaced_by):
        return Author(AuthorKind.REPLAY, replay_id=row.replaced_by)
    return Author(AuthorKind.API, key=row.key_name)


def replaced(replay_id: UUID) -> str:
    """The reason in the history of a memory that a replay replaced."""
    return f"Replaced by replay {replay_id}."
