"""Events as clients read them: status, stages, receipt, cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Row,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    null,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import NotFound
from pipeline.domain.events import FINAL, EventType, StageName, Status
from pipeline.domain.filters import EventFilter
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
from pipeline.events.progress import progress_query, standing_query
from pipeline.events.sql import statement
from pipeline.ledger.counting import COUNTED, at_least, count_near
from pipeline.ledger.excerpts import SHOWN_OPTIONS_BYTES, first_rows
from pipeline.ledger.filter_conditions import among, events_matching, shown_lane
from pipeline.ledger.statements import Direct
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
class Standing:
    """State of lanes. `pending`: events that have not ended. `related`: there are current
    relations. `stale`: the vector index lacks the latest vector of a memory.
    """

    pending: int
    related: bool
    stale: bool


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


@dataclass(frozen=True, slots=True)
class EventsPage:
    """A page of events, newest first. `count`: number of all matches.

    `bounded`: the parts, "count" and "results", that may lack events, because the work on very many
    scopes or events is bounded. A bounded count is a lower bound.
    """

    events: Sequence[EventView]
    count: int
    bounded: Sequence[str] = ()


class Events:
    """Reads of events."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)

    async def get(self, project_id: ProjectId, event_id: UUID) -> EventView:
        """Return an event. Errors: NotFound, also for another project's event."""
        views = await self._views(
            and_(events.c.project_id == project_id, events.c.id == event_id),
            limit=1,
            offset=0,
            whole=True,
        )
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
        return EventEnd(
            Status(row.status),
            row.failure_code,
            row.failure_detail,
            row.note,
            [receipt_line(line) for line in row.receipt or ()],
            row.omitted or (),
        )

    async def page(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
    ) -> EventsPage:
        """Return a page of excerpts of events, newest first, and the number of all matches.

        The number is approximate for far pages: see `count_near`.
        """
        if wanted.scope_ids:
            return await self._page_of_owner(project_id, wanted, limit=limit, offset=offset)
        matching = _countable(project_id, wanted)
        count = await count_near(self._engine, matching, limit=limit, offset=offset)
        views = await self.newest(project_id, wanted, limit=limit, offset=offset)
        most = count >= offset + limit + COUNTED
        count = at_least(count, len(views), limit=limit, offset=offset)
        return EventsPage(views, count, ["count"] if most else [])

    async def _page_of_owner(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
    ) -> EventsPage:
        """A page of the events of an owner, which may have very many scopes."""
        own = await page_of_owner(self._engine, project_id, wanted, limit=limit, offset=offset)
        views = await self._of_ids(project_id, own.ids)
        if own.whole and len(own.ids) < limit and (own.ids or not offset):
            return EventsPage(views, offset + len(own.ids))
        most = offset + limit + COUNTED
        counted = await count_of_owner(self._engine, project_id, wanted, most=most)
        count = at_least(counted.number, len(own.ids), limit=limit, offset=offset)
        parts = {"count": counted.exact, "results": own.whole}
        return EventsPage(views, count, [part for part, whole in parts.items() if not whole])

    async def newest(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> list[EventView]:
        """Return excerpts of matching events, newest first."""
        if wanted.scope_ids:
            own = await page_of_owner(self._engine, project_id, wanted, limit=limit, offset=offset)
            return await self._of_ids(project_id, own.ids)
        where = events_matching(project_id, wanted)
        return await self._views(where, limit=limit, offset=offset, whole=False)

    async def _of_ids(self, project_id: ProjectId, ids: Sequence[UUID]) -> list[EventView]:
        """Excerpts of these events, newest first."""
        if not ids:
            return []
        where = and_(events.c.project_id == project_id, among(events.c.id, ids))
        return await self._views(where, limit=len(ids), offset=0, whole=False)

    async def count(self, project_id: ProjectId, wanted: EventFilter) -> int:
        """Count the matching events; a lower bound for very many: see `count_near`."""
        if wanted.scope_ids:
            own = await count_of_owner(self._engine, project_id, wanted, most=COUNTED)
            return own.number
        return await count_near(self._engine, _countable(project_id, wanted), limit=0, offset=0)

    async def status(self, project_id: ProjectId, event_id: UUID) -> Status:
        """Return the status of an event. Errors: NotFound, also for another project's event."""
        query = select(events.c.status).where(
            events.c.project_id == project_id, events.c.id == event_id
        )
        async with self._engine.connect() as connection:
            status = await connection.scalar(query)
        if status is None:
            _incognito_time(project_id, event_id)
            return Status.SUCCEEDED
        return Status(status)

    async def progress(self, ids: Sequence[UUID]) -> dict[UUID, Progress]:
        """Return the progress of these events, read in one query.

        Incognito events have no row: they ended at once.
        """
        rows = await self._direct.rows(progress_query(), {"ids": list(ids)})
        ended = {key: Progress(Status.SUCCEEDED) for key in ids if key.version == VERSION}
        return ended | {
            row.id: Progress(
                Status(row.status), row.stage, row.wait_code, row.wait_until, row.wait_cause
            )
            for row in rows
        }

    async def standing(
        self, project_id: ProjectId, pinned: Mapping[str, str], *, embedder: str
    ) -> Standing:
        """Return the state of the lanes with these entity ids, and of their vectors."""
        values = {"in_project": project_id, "embedder": embedder, **pinned}
        [row] = await self._direct.rows(standing_query(*pinned), values)
        return Standing(pending=row.pending, related=row.related, stale=row.stale)

    async def _views(
        self, where: ColumnElement[bool], *, limit: int, offset: int, whole: bool
    ) -> list[EventView]:
        """Read matching events with their receipts, runs and messages, in a few statements.

        `whole`: all of them; otherwise excerpts, for a page.
        """
        query = _select_events(where, whole=whole).limit(limit).offset(offset)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
            if not rows:
                return []
            ids, batches = [r.id for r in rows], [r.batch_id for r in rows if r.batch_id]
            dry = [r.batch_id for r in rows if r.event_type == EventType.DRY_RUN]
            dry_lines = dict((await connection.execute(_dry_receipts_of(dry))).all()) if dry else {}
            read = _EventRows(
                rows,
                lines=(await connection.execute(_receipts_of(ids, whole=whole))).all(),
                runs=(await connection.execute(_runs_of(batches))).all(),
                messages=(await connection.execute(_messages_of(ids, whole=whole))).all(),
                dry_lines=dry_lines,
                graph=(await connection.execute(_graph_of(ids))).all() if whole else None,
            )
        return await beside_loop(read.views, inline=len(read) <= INLINE_ROWS)


@dataclass(frozen=True, slots=True)
class _EventRows:
    """Events, and the rows of other tables that belong to them. `graph`: None for a page."""

    events: Sequence[Row[Any]]
    lines: Sequence[Row[Any]]
    runs: Sequence[Row[Any]]
    messages: Sequence[Row[Any]]
    dry_lines: Mapping[UUID | None, Any]
    graph: Sequence[Row[Any]] | None

    def __len__(self) -> int:
        """Number of rows of the other tables."""
        parts = (self.lines, self.runs, self.messages, self.graph or ())
        return sum(map(len, parts))

    def views(self) -> list[EventView]:
        """One view of each event, in the order of the events."""
        lines, messages = _grouped(self.lines, "event_id"), _grouped(self.messages, "event_id")
        runs, graph = _grouped(self.runs, "batch_id"), _grouped(self.graph or (), "event_id")
        views = []
        for row in self.events:
            view = view_of(row, lines[row.id], runs[row.batch_id], messages[row.id])
            if view.event_type == EventType.DRY_RUN:
                view = dry_run_view(view, self.dry_lines.get(view.batch_id) or ())
            if self.graph is not None:
                view = replace(view, graph=graph_lines(graph[row.id]))
            views.append(view)
        return views


def _countable(project_id: ProjectId, wanted: EventFilter) -> Select[tuple[UUID]]:
    """The matching events of a project for a count.

    The few lanes of temporary runs are left out by an index, without a join of all lanes.
    """
    every = events_matching(project_id, wanted, private=True)
    return select(events.c.id).where(every, shown_lane(events.c.lane_id))


def _incognito_time(project_id: ProjectId, event_id: UUID) -> datetime:
    """The time of an incognito event, which has no row. Errors: NotFound for any other id."""
    at = incognito_time(project_id, event_id)
    if at is None:
        raise NotFound(NO_SUCH_EVENT)
    return at


def _grouped(rows: Sequence[Row[Any]], name: str) -> dict[UUID, list[Row[Any]]]:
    groups = defaultdict[UUID, list[Row[Any]]](list)
    for row in rows:
        groups[getattr(row, name)].append(row)
    return groups


def _select_events(where: ColumnElement[bool], *, whole: bool) -> Select[Any]:
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
            lanes.c.user_id,
            lanes.c.agent_id,
            lanes.c.app_id,
            lanes.c.run_id,
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
        .where(where)
        .order_by(events.c.created_at.desc(), events.c.id)
    )


def _receipts_of(ids: Sequence[UUID], *, whole: bool) -> Select[Any]:
    lines = select(receipts).where(among(receipts.c.event_id, ids))
    if whole:
        return lines.order_by(receipts.c.event_id, receipts.c.ordinal)
    texts = ("text", "previous_text", "reason")
    return first_rows(lines, of="event_id", order="ordinal", texts=texts)


def _dry_receipts_of(batches: Sequence[UUID]) -> Select[Any]:
    """Select the receipt lines of dry runs, by batch."""
    return select(stage_runs.c.batch_id, stage_runs.c.output["receipt"]).where(
        stage_runs.c.stage == StageName.APPLY, among(stage_runs.c.batch_id, batches)
    )


def _graph_of(ids: Sequence[UUID]) -> Select[Any]:
    lines = select(graph_receipts).where(among(graph_receipts.c.event_id, ids))
    return lines.order_by(graph_receipts.c.event_id, graph_receipts.c.ordinal)


def _messages_of(ids: Sequence[UUID], *, whole: bool) -> Select[Any]:
    this = and_(events.c.lane_id == messages.c.lane_id, events.c.seq == messages.c.seq)
    columns = (messages.c[name] for name in ("ordinal", "role", "name", "content", "omitted"))
    query = (
        select(events.c.id.label("event_id"), *columns)
        .join(events, this)
        .where(among(events.c.id, ids))
    )
    if whole:
        return query.order_by(messages.c.ordinal)
    return first_rows(query, of="event_id", order="ordinal", texts=("content",))


def _runs_of(batches: Sequence[UUID]) -> CompoundSelect[Any]:
    """Select the runs of these batches' stages, failed ones too, in the order they ended."""
    done, failed = (
        select(*(runs.c[name] for name in RUN), code).where(among(runs.c.batch_id, batches))
        for runs, code in ((stage_runs, null().label("code")), (failed_runs, failed_runs.c.code))
    )
    return union_all(done, failed).order_by("finished_at")
