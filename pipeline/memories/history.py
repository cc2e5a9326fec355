"""History of memories: every state and the cause of each change, also after a DELETE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    Row,
    Select,
    Uuid,
    and_,
    bindparam,
    column,
    false,
    func,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import LateralFromClause

from pipeline.domain.events import EventType
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import count_near
from pipeline.ledger.excerpts import SHOWN_CHARACTERS
from pipeline.ledger.fetching import fetch
from pipeline.ledger.filter_conditions import IN_PROJECT, message_at, shown
from pipeline.ledger.owned_rows import ListPage, page_of_owner
from pipeline.ledger.row_values import value_of
from pipeline.ledger.statements import Record
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, events, memories, memory_history, messages, receipts
from pipeline.memories.feed import CHANGES

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


class MemoryHistory(LedgerStore):
    """Store of the states of memories."""

    async def of(self, project_id: ProjectId, memory_id: UUID) -> list[HistoryEntry]:
        """All states of a memory, oldest first; empty for an unknown id.

        If the history is larger than LARGEST_BYTES: only the newest states.
        """
        values = {"in_project": project_id, "memory_id": memory_id, "largest": LARGEST_BYTES}
        entries = [_entry(row) for row in await self._direct.rows(_states_of_memory(), values)]
        return sorted(entries, key=lambda entry: entry.version)

    async def feed(
        self,
        project_id: ProjectId,
        *,
        ids: Mapping[str, str] | None = None,
        limit: int,
        offset: int,
    ) -> ListPage[HistoryEntry]:
        """A page of changes in the project, newest first, with shortened texts, and their number.

        The number is approximate for far pages: see `count_near`. `ids`: only changes of memories
        with these entity ids.
        """
        if ids:
            own = await page_of_owner(
                self._direct, project_id, CHANGES, ids, limit=limit, offset=offset
            )
            values = {"memory_ids": [key[0] for key in own.rows]}
            values["versions"] = [key[1] for key in own.rows]
            rows = await self._direct.rows(_listed_states(), values) if own.rows else ()
            entries = [_excerpt(_entry(row)) for row in rows]
            return ListPage(entries, own.count, own.bounded)
        table = memory_history.c
        # For each row of the page: as a join, it would read all memories of the project.
        visible = select(shown(memories)).where(memories.c.id == table.memory_id).scalar_subquery()
        mine = select(table.memory_id, table.version).where(
            table.project_id == project_id, ~table.temporary, visible.is_not(false())
        )
        order = (table.created_at.desc(), table.memory_id, table.version.desc())
        # Select the page from the index alone, before the joins.
        page = mine.order_by(*order).limit(limit).offset(offset).subquery("page")
        count = await count_near(self._single, mine, limit=limit, offset=offset)
        states = await fetch(self._single, _states_of(page))
        return ListPage([_excerpt(_entry(state)) for state in states], count)

    async def inputs(
        self, project_id: ProjectId, memory_ids: Sequence[UUID]
    ) -> dict[UUID, dict[str, str]]:
        """The message from which each memory was last extracted, by the memory's id."""
        its_event = and_(
            events.c.id == memories.c.event_id, events.c.project_id == memories.c.project_id
        )
        query = (
            select(memories.c.id, messages.c.role, messages.c.content)
            .join(events, its_event)
            .join(messages, message_at(memories.c.message_ordinal))
            .where(memories.c.project_id == project_id, memories.c.id.in_(memory_ids))
        )
        rows = await fetch(self._single, query)
        return {row.id: {"role": row.role, "content": row.content} for row in rows}


@cache
def _states_of_memory() -> Select[Any]:
    """The newest states of the memory `memory_id` of a project, up to `largest` bytes."""
    table = memory_history.c
    this = and_(
        table.project_id == IN_PROJECT, table.memory_id == bindparam("memory_id", type_=Uuid)
    )
    texts = (table.old_text, table.new_text)
    size = sum(func.coalesce(func.octet_length(text), 0) for text in texts)
    newer = func.sum(size).over(order_by=table.version.desc())
    sizes = select(table.version, newer.label("newer")).where(this).subquery()
    light = select(sizes.c.version).where(sizes.c.newer <= bindparam("largest", type_=BigInteger))
    page = select(table.memory_id, table.version).where(this, table.version.in_(light))
    return _states_of(page.subquery("page"))


@cache
def _listed_states() -> Select[Any]:
    """The states of the keys `memory_ids` and `versions`."""
    listed = func.unnest(
        bindparam("memory_ids", type_=ARRAY(Uuid)), bindparam("versions", type_=ARRAY(Integer))
    ).table_valued(column("memory_id", Uuid), column("version", Integer), name="page")
    return _states_of(listed.render_derived())


def _states_of(page: FromClause) -> Select[Any]:
    """The states on a page (memory_id, version), newest first.

    With their memory's entity ids and the message each was extracted from. Each table is looked up
    once for each row of the page: a plain join reads whole tables, because a generic plan does not
    know how short the page is.
    """
    key = memory_history.c
    state = _first(
        select(memory_history).where(
            key.memory_id == page.c.memory_id, key.version == page.c.version
        ),
        "state",
    )
    names = ("user_id", "agent_id", "app_id", "run_id", "categories", "replaced_by")
    memory = _first(
        select(*(memories.c[name] for name in names)).where(memories.c.id == state.c.memory_id),
        "memory",
    )
    event = _first(
        select(events.c.lane_id, events.c.seq, events.c.event_type).where(
            events.c.id == state.c.event_id, events.c.project_id == state.c.project_id
        ),
        "event",
    )
    message = _first(
        select(messages.c.role, messages.c.content).where(
            message_at(state.c.message_ordinal, event)
        ),
        "message",
    )
    accepted = (
        select(receipts.c.suggestion_id)
        .where(
            receipts.c.event_id == state.c.event_id,
            receipts.c.memory_id == state.c.memory_id,
            receipts.c.outcome == state.c.event,
            event.c.event_type != EventType.ADD,
        )
        .limit(1)
    )
    return (
        select(
            *state.c,
            *memory.c,
            *message.c,
            _key_name(state),
            accepted.scalar_subquery().label("suggestion_id"),
        )
        .select_from(
            page.join(state, true())
            .join(memory, true())
            .outerjoin(event, true())
            .outerjoin(message, true())
        )
        .order_by(state.c.created_at.desc(), state.c.memory_id, state.c.version.desc())
    )


def _key_name(state: FromClause) -> ColumnElement[str | None]:
    """The name of the project's API key that made a change."""
    its_key = (api_keys.c.id == state.c.key_id, api_keys.c.project_id == state.c.project_id)
    query = select(api_keys.c.name).where(*its_key).limit(1)
    return query.scalar_subquery().label("key_name")


def _first(query: Select[Any], name: str) -> LateralFromClause:
    """The one row of a look-up; with the LIMIT, the planner cannot read the table instead."""
    return query.limit(1).lateral(name)


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


def _entry(row: Row[Any] | Record) -> HistoryEntry:
    """Build an entry from a row of `_states_of`."""
    return value_of(
        HistoryEntry,
        row,
        scope=Scope.of(row),
        message={"role": row.role, "content": row.content} if row.role else None,
        author=_author(row),
        said_at=row.said_at or row.valid_from,
    )


def _author(row: Row[Any] | Record) -> Author:
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
