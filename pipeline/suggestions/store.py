"""Reads of suggestions, with the texts and sources of the memories that they would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import product
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import count_near
from pipeline.ledger.fetching import fetch, fetch_known
from pipeline.ledger.filter_conditions import among, message_at, one_of, shown_lane
from pipeline.ledger.owned_rows import LaneRows, ListPage, page_of_owner
from pipeline.ledger.row_values import grouped, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import (
    curator_runs,
    events,
    lanes,
    memories,
    memory_history,
    messages,
    receipts,
    suggestions,
)

DELETED = "Its memories or messages are deleted."
NO_SUCH_SUGGESTION = "Suggestion not found or you don't have permission to access it."


@dataclass(frozen=True, slots=True)
class Target:
    """A memory that a suggestion would change, in the version that the suggestion is about.

    `text`, `said_at`: those of that version. `quote`: the message that it was extracted from;
    `speaker`: the name in it.
    """

    memory_id: UUID
    version: int
    text: str | None = None
    said_at: datetime | None = None
    quote: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class StoredSuggestion:
    """A suggestion as stored.

    An open one whose memories have changed since is shown as INVALID. `decision_event_id`: the
    event of its acceptance. `deleted`: a person has deleted one of its memories, or the messages of
    its scope; then it is shown without texts.
    """

    id: UUID
    lane_id: UUID
    kind: SuggestionKind
    state: SuggestionState
    origin: str
    event_id: UUID | None
    fact_text: str | None
    targets: Sequence[Target]
    proposed_text: str | None
    reason: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_event_id: UUID | None
    run_id: UUID | None
    deleted: bool = False


class Suggestions(LedgerStore):
    """Store of the suggestions."""

    async def get(self, project_id: ProjectId, suggestion_id: UUID) -> StoredSuggestion:
        """One suggestion. Errors: NotFound, also for another project's suggestion."""
        mine = and_(suggestions.c.project_id == project_id, suggestions.c.id == suggestion_id)
        row = await fetch_known(self._single, _QUERY.where(mine), missing=NO_SUCH_SUGGESTION)
        [stored] = await self._stored([row])
        return stored

    async def page(
        self,
        project_id: ProjectId,
        *,
        ids: Mapping[str, str] | None = None,
        state: SuggestionState | None,
        kind: SuggestionKind | None = None,
        limit: int,
        offset: int,
    ) -> ListPage[StoredSuggestion]:
        """A page of the project's suggestions, newest first, and their number: see `count_near`.

        `ids`: only those of the lanes with these entity ids. `state`, `kind`: only those that are
        shown with them.
        """
        of_project = suggestions.c.project_id == project_id
        order = (suggestions.c.created_at.desc(), suggestions.c.id)
        if ids:
            listed = _rows_of(state, kind)
            own = await page_of_owner(
                self._direct, project_id, listed, ids, limit=limit, offset=offset
            )
            own_ids = [row_id for (row_id,) in own.rows]
            these = _QUERY.where(of_project, among(suggestions.c.id, own_ids))
            rows = await fetch(self._single, these.order_by(*order)) if own_ids else ()
            return ListPage(await self._stored(rows), own.count, own.bounded)
        mine = and_(of_project, shown_lane(suggestions.c.lane_id), _shown_as(state, kind))
        rows = await fetch(
            self._single, _QUERY.where(mine).order_by(*order).limit(limit).offset(offset)
        )
        counted = select(suggestions.c.id).where(mine)
        count = await count_near(self._single, counted, limit=limit, offset=offset)
        return ListPage(await self._stored(rows), count)

    async def open_ids(
        self, project_id: ProjectId, kind: SuggestionKind, *, limit: int
    ) -> list[UUID]:
        """Ids of the oldest open suggestions of a kind."""
        query = (
            select(suggestions.c.id)
            .where(
                suggestions.c.project_id == project_id,
                one_of(suggestions.c.kind, [kind]),
                one_of(_shown_state, [SuggestionState.OPEN]),
            )
            .order_by(suggestions.c.created_at, suggestions.c.id)
            .limit(limit)
        )
        return [row.id for row in await fetch(self._single, query)]

    async def _stored(self, rows: Sequence[Row[Any]]) -> list[StoredSuggestion]:
        """The rows as values, each with its targets."""
        ids = [row.id for row in rows]
        query = _TARGETS.where(among(suggestions.c.id, ids))
        targets = grouped(await fetch(self._single, query) if ids else (), "id")
        return [_stored(row, targets[row.id]) for row in rows]


_TARGET = (
    func.jsonb_array_elements(suggestions.c.targets)
    .table_valued(column("value", JSONB), with_ordinality="place")
    .render_derived()
)
_MEMORY_ID = _TARGET.c.value["memory_id"].astext
_VERSION = cast(_TARGET.c.value["version"].astext, Integer)
# A person deleted one of its memories, also the one that an add stored in place of the change, or
# all messages of the scope up to the one that it is about. An undo of the deletion ends this.
_forgotten = and_(memories.c.state == "RETIRED", memories.c.forgotten_at.is_not(None))
_of_target = (
    select(1)
    .select_from(_TARGET)
    .join(memories, memories.c.id == cast(_MEMORY_ID, Uuid))
    .where(memories.c.project_id == suggestions.c.project_id, _forgotten)
    .correlate(suggestions)
)
_of_added = (
    select(1)
    .select_from(receipts)
    .join(memories, memories.c.id == receipts.c.memory_id)
    .where(
        receipts.c.event_id == suggestions.c.event_id,
        receipts.c.suggestion_id == suggestions.c.id,
        memories.c.project_id == suggestions.c.project_id,
        _forgotten,
    )
    .correlate(suggestions)
)
_last_seq = func.coalesce(
    select(events.c.seq)
    .where(events.c.id == suggestions.c.event_id)
    .correlate(suggestions)
    .scalar_subquery(),
    select(curator_runs.c.accepted_seq)
    .where(curator_runs.c.id == suggestions.c.run_id)
    .correlate(suggestions)
    .scalar_subquery(),
)
_cleared = (
    select(1)
    .select_from(lanes)
    .where(lanes.c.id == suggestions.c.lane_id, lanes.c.forgotten_seq >= _last_seq)
    .correlate(suggestions)
)
_DELETED = or_(exists(_of_target), exists(_of_added), exists(_cleared))
# Indexes have it. Triggers keep the mark `outdated`. Lists compare it with constants: for a
# parameter, the planner may read all states in the order of the page.
_shown_state = func.shown_state(suggestions.c.state, suggestions.c.outdated, type_=Text())
_TEXTS = ("fact_text", "proposed_text")
_UNSHOWN = ("project_id", "targets", "state", "outdated", "content_hash", "reason", *_TEXTS)
_QUERY: Select[Any] = select(
    *(c for c in suggestions.c if c.name not in _UNSHOWN),
    *(case((~_DELETED, suggestions.c[name])).label(name) for name in _TEXTS),
    case((_DELETED, DELETED), else_=suggestions.c.reason).label("reason"),
    _DELETED.label("deleted"),
    _shown_state.label("state"),
)
# The version of each target that the suggestion is about, and the message it was extracted from.
_TARGETS: Select[Any] = (
    select(
        suggestions.c.id,
        _MEMORY_ID.label("memory_id"),
        _VERSION.label("version"),
        memory_history.c.new_text.label("text"),
        func.coalesce(memory_history.c.said_at, memory_history.c.valid_from).label("said_at"),
        messages.c.content.label("quote"),
        messages.c.name.label("speaker"),
    )
    .select_from(suggestions)
    .join(_TARGET, onclause=_TARGET.c.place > 0)
    .outerjoin(
        memory_history,
        and_(
            memory_history.c.memory_id == cast(_MEMORY_ID, Uuid),
            memory_history.c.version == _VERSION,
            memory_history.c.project_id == suggestions.c.project_id,
        ),
    )
    .outerjoin(
        events,
        and_(
            events.c.id == memory_history.c.event_id,
            events.c.project_id == suggestions.c.project_id,
        ),
    )
    .outerjoin(messages, message_at(memory_history.c.message_ordinal))
    .order_by(suggestions.c.id, _TARGET.c.place)
)


def _shown_as(state: SuggestionState | None, kind: SuggestionKind | None) -> ColumnElement[bool]:
    """Match the suggestions that are shown with this state and kind; None matches all."""
    return and_(
        true(),
        *([one_of(_shown_state, [state])] if state is not None else []),
        *([one_of(suggestions.c.kind, [kind])] if kind is not None else []),
    )


@cache
def _rows_of(state: SuggestionState | None, kind: SuggestionKind | None) -> LaneRows:
    """The suggestions of a state and a kind as rows of an owner's list."""
    if state is None and kind is None:
        return LaneRows(suggestions)
    pairs = product(
        SuggestionState if state is None else [state], SuggestionKind if kind is None else [kind]
    )
    return LaneRows(suggestions, [_shown_as(state, kind)], [_shown_as(*pair) for pair in pairs])


def _target(row: Row[Any], *, deleted: bool) -> Target:
    """A target; without texts if one of the suggestion is deleted."""
    memory_id = UUID(row.memory_id)
    return Target(memory_id, row.version) if deleted else value_of(Target, row, memory_id=memory_id)


def _stored(row: Row[Any], targets: Sequence[Row[Any]]) -> StoredSuggestion:
    """A row of the query as a value."""
    return value_of(
        StoredSuggestion,
        row,
        kind=SuggestionKind(row.kind),
        state=SuggestionState(row.state),
        targets=[_target(target, deleted=row.deleted) for target in targets],
    )
