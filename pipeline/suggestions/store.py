"""Reads of suggestions. They are written with the memories: see pipeline/lanes/effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Uuid,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.errors import NotFound
from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import memories, suggestions

NO_SUCH_SUGGESTION = "Suggestion not found or you don't have permission to access it."


@dataclass(frozen=True, slots=True)
class StoredSuggestion:
    """A suggestion as stored. `targets`: the id and version of each memory that it would change.

    An open one whose memories have changed since is shown as INVALID.
    """

    id: UUID
    kind: SuggestionKind
    state: SuggestionState
    origin: str
    event_id: UUID | None
    fact_text: str | None
    targets: Sequence[Mapping[str, Any]]
    proposed_text: str | None
    reason: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None


class Suggestions:
    """Store of the suggestions."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def get(self, project_id: ProjectId, suggestion_id: UUID) -> StoredSuggestion:
        """One suggestion. Errors: NotFound, also for another project's suggestion."""
        mine = and_(suggestions.c.project_id == project_id, suggestions.c.id == suggestion_id)
        async with self._single.connect() as connection:
            row = (await connection.execute(_QUERY.where(mine))).one_or_none()
        if row is None:
            raise NotFound(NO_SUCH_SUGGESTION)
        return _stored(row)

    async def page(
        self, project_id: ProjectId, *, state: SuggestionState | None, limit: int, offset: int
    ) -> tuple[list[StoredSuggestion], int]:
        """A page of the project's suggestions, newest first, and the number of all.

        `state`: only those that are shown with it.
        """
        mine: ColumnElement[bool] = suggestions.c.project_id == project_id
        if state is not None:
            mine = and_(mine, _shown_state == state)
        order = (suggestions.c.created_at.desc(), suggestions.c.id)
        rows = _QUERY.where(mine).order_by(*order).limit(limit).offset(offset)
        count = select(func.count()).select_from(suggestions).where(mine)
        async with self._single.connect() as connection:
            page = [_stored(row) for row in await connection.execute(rows)]
            return page, await connection.scalar(count) or 0


_TARGET = func.jsonb_array_elements(suggestions.c.targets).table_valued(column("value", JSONB))
_UNCHANGED = exists().where(
    memories.c.id == cast(_TARGET.c.value["memory_id"].astext, Uuid),
    memories.c.version == _TARGET.c.value["version"].as_integer(),
    memories.c.state == "ACTIVE",
)
_OUTDATED = exists(select(1).select_from(_TARGET).where(~_UNCHANGED).correlate(suggestions))
_shown_state = case(
    (and_(suggestions.c.state == "OPEN", _OUTDATED), "INVALID"), else_=suggestions.c.state
)
_QUERY: Select[Any] = select(
    *(c for c in suggestions.c if c.name not in ("project_id", "lane_id", "state", "content_hash")),
    _shown_state.label("state"),
)


def _stored(row: Row[Any]) -> StoredSuggestion:
    """A row of the query as a value."""
    return StoredSuggestion(
        id=row.id,
        kind=SuggestionKind(row.kind),
        state=SuggestionState(row.state),
        origin=row.origin,
        event_id=row.event_id,
        fact_text=row.fact_text,
        targets=row.targets,
        proposed_text=row.proposed_text,
        reason=row.reason,
        created_at=row.created_at,
        decided_at=row.decided_at,
        decided_by=row.decided_by,
    )
