"""Events as clients read them: status, stages, receipt, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ClauseElement,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    cast,
    func,
    null,
    select,
    union_all,
)

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import NotFound
from pipeline.domain.events import FINAL, EventType, StageName, Status
from pipeline.domain.filters import ENTITY_IDS, EventFilter
from pipeline.domain.incognito import NOT_STORED, VERSION, incognito_time
from pipeline.domain.tenants import ProjectId
from pipeline.events.event_view import (
    EventView,
    ReceiptLine,
    dry_run_view,
    graph_lines,
    incognito_view,
    receipt_line,
    view_of,
)
from pipeline.events.owners import count_of_owner, page_of_owner
from pipeline.events.progress import lane_states_query, progress_query
from pipeline.events.sql import statement
from pipeline.ledger.counting import COUNTED, at_least, number_of
from pipeline.ledger.excerpts import SHOWN_OPTIONS_BYTES, first_rows
from pipeline.ledger.filter_conditions import (
    IN_PROJECT,
    EventShape,
    event_shape,
    events_matching,
    of_event,
    shown_lane,
)
from pipeline.ledger.owned_rows import ListPage
from pipeline.ledger.row_values import grouped, value_of
from pipeline.ledger.statements import SHAPES, Compiled, Record
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import (
    events,
    failed_runs,
    graph_receipts,
    lanes,
    messages,
    receipts,
    stage_runs,
)
from pipeline.ledger.tables.costs import event_costs

# Rows up to which views are built on the event loop: a few milliseconds.
INLINE_ROWS = 500
NO_SUCH_EVENT = "Event not found or you don't have permission to access it."

# Columns with the cost of a stage's run, successful or failed.
RUN = (
    *("batch_id", "stage", "ms", "model", "calls"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "finished_at", "prompt"),
)


@dataclass(frozen=True, slots=True)
class EventEnd:
    """The part of an event that its caller waits for: what it stored, or why it failed.

    `omitted`: message parts that were not kept, each with the number of its message.
    """

    status: Status
    failure_code: str | None
    failure_detail: str | None
    note: str | None
    receipt: Sequence[ReceiptLine]
    omitted: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LaneStates:
    """State of lanes. `pending`: events that have not ended. `related`: there are current
    relations. `stale`: the vector index lacks the latest vector of a memory. `few`: they have at
    most FEW memories.
    """

    pending: int
    related: bool
    stale: bool
    few: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an event. `stage` is set while it runs, the others while it waits."""

    status: Status
    stage: str | None = None
    wait_code: str | None = None
    wait_until: datetime | None = None
    wait_cause: str | None = None

    @property
    def ended(self) -> bool:
        """Tell if the status is final."""
        return self.status in FINAL


class Events(LedgerStore):
    """Reads of events."""

    async def get(self, project_id: ProjectId, event_id: UUID) -> EventView:
        """Return an event. Errors: NotFound, also for another project's event."""
        values = {"in_project": project_id, "ids": [event_id]}
        views = await self._views(_listed_events(whole=True), values, whole=True)
        if views:
            return views[0]
        return incognito_view(project_id, event_id, _incognito_time(project_id, event_id))

    async def end(self, project_id: ProjectId, event_id: UUID) -> EventEnd:
        """The outcome of an event in one short statement, without its messages, stages and cost.

        Errors: NotFound, also for another project's event.
        """
        values = {"project_id": project_id, "event_id": event_id}
        row = await self._direct.row(statement("read_end"), values)
        if row is None:
            _incognito_time(project_id, event_id)
            return EventEnd(Status.SUCCEEDED, None, None, NOT_STORED, (), ())
        return value_of(
            EventEnd,
            row,
            status=Status(row.status),
            receipt=[receipt_line(line) for line in row.receipt or ()],
            omitted=row.omitted or (),
        )

    async def page(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
    ) -> ListPage[EventView]:
        """Return a page of excerpts of events, newest first, and the number of all matches.

        The number is approximate for far pages: see `count_near`.
        """
        if wanted.scope_ids:
            return await self._page_of_owner(project_id, wanted, limit=limit, offset=offset)
        most_counted = offset + limit + COUNTED
        count = await self._counted(project_id, wanted, most=most_counted)
        views = await self.newest(project_id, wanted, limit=limit, offset=offset)
        most = count >= most_counted
        count = at_least(count, len(views), limit=limit, offset=offset)
        return ListPage(views, count, ["count"] if most else [])

    async def _page_of_owner(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
    ) -> ListPage[EventView]:
        """A page of the events of an owner, which may have very many scopes."""
        ids, whole = await page_of_owner(
            self._direct, project_id, wanted, limit=limit, offset=offset
        )
        views = await self._of_ids(project_id, ids)
        if whole and len(ids) < limit and (ids or not offset):
            return ListPage(views, offset + len(ids))
        most = offset + limit + COUNTED
        number, exact = await count_of_owner(self._direct, project_id, wanted, most=most)
        count = at_least(number, len(ids), limit=limit, offset=offset)
        parts = {"count": exact, "results": whole}
        return ListPage(views, count, [part for part, exact in parts.items() if not exact])

    async def newest(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> list[EventView]:
        """Return excerpts of matching events, newest first."""
        if wanted.scope_ids:
            ids, _ = await page_of_owner(
                self._direct, project_id, wanted, limit=limit, offset=offset
            )
            return await self._of_ids(project_id, ids)
        shaped, values = event_shape(wanted)
        values |= {"in_project": project_id, "limit": limit, "offset": offset}
        return await self._views(await SHAPES.of(_newest_events, shaped), values, whole=False)

    async def _of_ids(self, project_id: ProjectId, ids: Sequence[UUID]) -> list[EventView]:
        """Excerpts of these events, newest first."""
        if not ids:
            return []
        values = {"in_project": project_id, "ids": list(ids)}
        return await self._views(_listed_events(whole=False), values, whole=False)

    async def count(self, project_id: ProjectId, wanted: EventFilter) -> int:
        """Count the matching events; a lower bound for very many: see `count_near`."""
        if wanted.scope_ids:
            number, _ = await count_of_owner(self._direct, project_id, wanted, most=COUNTED)
            return number
        return await self._counted(project_id, wanted, most=COUNTED)

    async def _counted(self, project_id: ProjectId, wanted: EventFilter, *, most: int) -> int:
        """The number of matching events of a project, up to `most`."""
        shaped, values = event_shape(wanted)
        values |= {"in_project": project_id, "counted": most}
        [(number,)] = await self._direct.rows(await SHAPES.of(_number, shaped), values)
        return int(number)

    async def status(self, project_id: ProjectId, event_id: UUID) -> Status:
        """Return the status of an event. Errors: NotFound, also for another project's event."""
        row = await self._direct.row(_STATUS, {"in_project": project_id, "event_id": event_id})
        if row is None:
            _incognito_time(project_id, event_id)
            return Status.SUCCEEDED
        return Status(row.status)

    async def progress(self, ids: Sequence[UUID]) -> dict[UUID, Progress]:
        """Return the progress of these events, read in one query.

        Incognito events have no row: they ended at once.
        """
        rows = await self._direct.rows(progress_query(), {"ids": list(ids)})
        ended = {key: Progress(Status.SUCCEEDED) for key in ids if key.version == VERSION}
        return ended | {row.id: value_of(Progress, row, status=Status(row.status)) for row in rows}

    async def lane_states(
        self, project_id: ProjectId, pinned: Mapping[str, str], *, embedder: str
    ) -> LaneStates:
        """Return the state of the lanes with these entity ids, and of their vectors."""
        values = {"in_project": project_id, "embedder": embedder, **pinned}
        [row] = await self._direct.rows(lane_states_query(*pinned), values)
        return LaneStates(row.pending, row.related, row.stale, row.few)

    async def _views(
        self, query: ClauseElement | Compiled, values: Mapping[str, Any], *, whole: bool
    ) -> list[EventView]:
        """Read events with their receipts, runs and messages, in a few statements.

        `whole`: all of them; otherwise excerpts, for a page.
        """
        rows = await self._direct.rows(query, values)
        if not rows:
            return []
        ids = {"ids": [r.id for r in rows]}
        batches = {"ids": [r.batch_id for r in rows if r.batch_id]}
        dry = {"ids": [r.batch_id for r in rows if r.event_type == EventType.DRY_RUN]}
        read = _EventRows(
            rows,
            lines=await self._direct.rows(_receipts(whole=whole), ids),
            runs=await self._direct.rows(_RUNS, batches),
            messages=await self._direct.rows(_messages(whole=whole), ids),
            dry_lines=dict(await self._direct.rows(_DRY_RECEIPTS, dry)) if dry["ids"] else {},
            graph=await self._direct.rows(_GRAPH, ids) if whole else None,
        )
        return await beside_loop(read.views, inline=len(read) <= INLINE_ROWS)


@dataclass(frozen=True, slots=True)
class _EventRows:
    """Events, and the rows of other tables that belong to them. `graph`: None for a page."""

    events: Sequence[Record]
    lines: Sequence[Record]
    runs: Sequence[Record]
    messages: Sequence[Record]
    dry_lines: Mapping[UUID | None, Any]
    graph: Sequence[Record] | None

    def __len__(self) -> int:
        """Number of rows of the other tables."""
        parts = (self.lines, self.runs, self.messages, self.graph or ())
        return sum(map(len, parts))

    def views(self) -> list[EventView]:
        """One view of each event, in the order of the events."""
        lines, messages = grouped(self.lines, "event_id"), grouped(self.messages, "event_id")
        runs, graph = grouped(self.runs, "batch_id"), grouped(self.graph or (), "event_id")
        views = []
        for row in self.events:
            view = view_of(row, lines[row.id], runs[row.batch_id], messages[row.id])
            if view.event_type == EventType.DRY_RUN:
                view = dry_run_view(view, self.dry_lines.get(view.batch_id) or ())
            if self.graph is not None:
                view = replace(view, graph=graph_lines(graph[row.id]))
            views.append(view)
        return views


def _number(wanted: EventShape) -> Select[int]:
    """Select the number of matching events of a project, up to `counted`.

    The few lanes of temporary runs are left out by an index, without a join of all lanes.
    """
    every = events_matching(wanted, private=True)
    return number_of(select(events.c.id).where(every, shown_lane(events.c.lane_id)))


def _incognito_time(project_id: ProjectId, event_id: UUID) -> datetime:
    """The time of an incognito event, which has no row. Errors: NotFound for any other id."""
    at = incognito_time(project_id, event_id)
    if at is None:
        raise NotFound(NO_SUCH_EVENT)
    return at


def _events(*, whole: bool) -> Select[Any]:
    """Select events with their lanes and costs, newest first; large options only if `whole`."""
    siblings = events.alias("siblings")
    batch_events = (
        select(func.count())
        .where(siblings.c.batch_id == events.c.batch_id)
        .scalar_subquery()
        .label("batch_events")
    )
    options_bytes = func.octet_length(cast(events.c.options, Text))
    light = options_bytes <= SHOWN_OPTIONS_BYTES
    return (
        select(
            *(column for column in events.c if column.key != "options"),
            (events.c.options if whole else case((light, events.c.options))).label("options"),
            batch_events,
            *(lanes.c[name] for name in ENTITY_IDS),
            lanes.c.batch_id.label("lane_batch_id"),
            lanes.c.state.label("lane_state"),
            lanes.c.stage,
            lanes.c.attempts,
            lanes.c.wait_code,
            lanes.c.wait_cause,
            lanes.c.due_at,
            event_costs.c.calls.label("paid_calls"),
            event_costs.c.prompt_tokens.label("paid_prompt_tokens"),
            event_costs.c.completion_tokens.label("paid_completion_tokens"),
            event_costs.c.cost_nano_usd,
        )
        .join(lanes)
        .outerjoin(event_costs, event_costs.c.event_id == events.c.id)
        .order_by(events.c.created_at.desc(), events.c.id)
    )


@cache
def _listed_events(*, whole: bool) -> Select[Any]:
    """The events `ids` of a project."""
    return _events(whole=whole).where(events.c.project_id == IN_PROJECT, _listed(events.c.id))


def _newest_events(wanted: EventShape) -> Select[Any]:
    """Excerpts of matching events of a project: the page of `limit` at `offset`."""
    limit, offset = (bindparam(name, type_=Integer) for name in ("limit", "offset"))
    matching = _events(whole=False).where(events_matching(wanted))
    return matching.limit(limit).offset(offset)


def _listed(column: ColumnElement[UUID]) -> ColumnElement[bool]:
    """Match rows with one of the ids `ids`."""
    return column == any_(bindparam("ids", type_=ARRAY(Uuid)))


@cache
def _receipts(*, whole: bool) -> Select[Any]:
    lines = select(receipts).where(_listed(receipts.c.event_id))
    if whole:
        return lines.order_by(receipts.c.event_id, receipts.c.ordinal)
    texts = ("text", "previous_text", "reason")
    return first_rows(lines, of="event_id", order="ordinal", texts=texts)


@cache
def _messages(*, whole: bool) -> Select[Any]:
    columns = (messages.c[name] for name in ("ordinal", "role", "name", "content", "omitted"))
    query = (
        select(events.c.id.label("event_id"), *columns)
        .join(events, of_event())
        .where(_listed(events.c.id))
    )
    if whole:
        return query.order_by(messages.c.ordinal)
    return first_rows(query, of="event_id", order="ordinal", texts=("content",))


def _runs(runs: FromClause, code: ColumnElement[Any]) -> Select[Any]:
    columns = (runs.c[name] for name in RUN)
    return select(*columns, code).where(_listed(runs.c.batch_id))


# The runs of the stages of these batches, failed ones too, in the order they ended.
_RUNS = union_all(
    _runs(stage_runs, null().label("code")), _runs(failed_runs, failed_runs.c.code)
).order_by("finished_at")
_GRAPH = (
    select(graph_receipts)
    .where(_listed(graph_receipts.c.event_id))
    .order_by(graph_receipts.c.event_id, graph_receipts.c.ordinal)
)
# The receipt lines of dry runs, by batch.
_DRY_RECEIPTS = select(stage_runs.c.batch_id, stage_runs.c.output["receipt"]).where(
    stage_runs.c.stage == StageName.APPLY, _listed(stage_runs.c.batch_id)
)
_STATUS = select(events.c.status).where(
    events.c.project_id == IN_PROJECT, events.c.id == bindparam("event_id", type_=Uuid)
)
