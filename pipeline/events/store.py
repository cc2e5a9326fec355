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

from pipeline.accounting.costs import Paid, nano_usd
from pipeline.domain.errors import NotFound
from pipeline.domain.events import FINAL, EventType, StageName, Status
from pipeline.domain.facts import Outcome
from pipeline.domain.filters import EventFilter
from pipeline.domain.graph import GraphOutcome
from pipeline.domain.incognito import NOT_STORED, VERSION, incognito_time
from pipeline.domain.lanes import GATHERING
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.events.owners import countable, matching_events
from pipeline.events.progress import progress_query, standing_query
from pipeline.events.sql import statement
from pipeline.ledger.counting import count_near
from pipeline.ledger.excerpts import SHOWN_OPTIONS_BYTES, first_rows
from pipeline.ledger.filter_conditions import among
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

NO_SUCH_EVENT = "Event not found or you don't have permission to access it."

# Columns with the cost of a stage's run, successful or failed.
RUN = (
    *("batch_id", "stage", "ms", "model", "calls"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "finished_at", "prompt"),
)


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """The outcome of one fact of an event.

    `suggestion_id`: the change that was withheld. `conflict_id`: the conflict it is part of.
    """

    outcome: Outcome
    memory_id: UUID | None
    text: str
    previous_text: str | None
    reason: str
    message_ordinal: int
    suggestion_id: UUID | None = None
    conflict_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class GraphReceiptLine:
    """The effect of one fact of an event on a relation of the graph."""

    outcome: GraphOutcome
    relation_id: UUID | None
    memory_id: UUID | None
    source: str
    relation: str
    destination: str
    reason: str
    message_ordinal: int


@dataclass(frozen=True, slots=True)
class StageRun:
    """Cost of one run of a stage; the events of a batch share it.

    `prompt`: name and version of the prompt; empty without a model call. `code`: the reason of a
    failed run.
    """

    stage: str
    ms: float
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    finished_at: datetime
    prompt: str = ""
    code: str | None = None

    @property
    def paid(self) -> Paid:
        """Cost of the run."""
        cost = nano_usd(self.cost_usd)
        return Paid(self.calls, self.prompt_tokens, self.completion_tokens, cost)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event with everything that clients see. `stage` is set while it runs, and the wait while
    it runs or gathers.
    """

    id: UUID
    scope: Scope
    event_type: str
    status: Status
    options: dict[str, Any]
    failure_code: str | None
    failure_detail: str | None
    graph_status: str | None
    note: str | None
    mode: str | None
    mode_reason: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    replays: int
    replayed_at: datetime | None
    undone_at: datetime | None
    batch_id: UUID | None
    batch_events: int
    # The event's own share of the costs.
    paid: Paid
    stage: str | None
    attempts: int
    wait_code: str | None
    wait_until: datetime | None
    wait_cause: str | None
    messages: Sequence[dict[str, Any]]
    # Parts of the messages that were not kept, each with the number of its message.
    omitted: Sequence[dict[str, Any]]
    receipt: Sequence[ReceiptLine]
    stages: Sequence[StageRun]
    # The effects on the graph. None: a page leaves them out.
    graph: Sequence[GraphReceiptLine] | None = None
    # On a page: texts were shortened, or messages, receipt lines or options left out.
    truncated: bool = False


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
        return _incognito_view(project_id, event_id, _incognito_time(project_id, event_id))

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
            [_receipt_line(line) for line in row.receipt or ()],
            row.omitted or (),
        )

    async def page(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
    ) -> tuple[list[EventView], int]:
        """Return a page of events, newest first, and the number of all matches.

        The events are excerpts. The number is approximate for far pages: see `count_near`.
        """
        where, few = await matching_events(self._engine, project_id, wanted)
        matching = countable(project_id, wanted, where, few=few)
        count = await count_near(self._engine, matching, limit=limit, offset=offset)
        return await self._views(where, limit=limit, offset=offset, whole=False), count

    async def newest(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> list[EventView]:
        """Return excerpts of matching events, newest first."""
        where, _ = await matching_events(self._engine, project_id, wanted)
        return await self._views(where, limit=limit, offset=offset, whole=False)

    async def count(self, project_id: ProjectId, wanted: EventFilter) -> int:
        """Count the matching events; a lower bound for very many: see `count_near`."""
        where, few = await matching_events(self._engine, project_id, wanted)
        matching = countable(project_id, wanted, where, few=few)
        return await count_near(self._engine, matching, limit=0, offset=0)

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
        siblings = events.alias("siblings")
        batch_events = (
            select(func.count())
            .where(siblings.c.batch_id == events.c.batch_id)
            .scalar_subquery()
            .label("batch_events")
        )
        options_bytes = func.octet_length(cast(events.c.options, Text))
        light = options_bytes <= SHOWN_OPTIONS_BYTES
        query: Select[Any] = (
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
            .limit(limit)
            .offset(offset)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
            if not rows:
                return []
            ids, batches = [r.id for r in rows], [r.batch_id for r in rows if r.batch_id]
            lines = (await connection.execute(_receipts_of(ids, whole=whole))).all()
            runs = (await connection.execute(_runs_of(batches))).all()
            message_rows = (await connection.execute(_messages_of(ids, whole=whole))).all()
            dry = [r.batch_id for r in rows if r.event_type == EventType.DRY_RUN]
            dry_lines = dict((await connection.execute(_dry_receipts_of(dry))).all()) if dry else {}
            graph = (await connection.execute(_graph_of(ids))).all() if whole else None
        lines_of, messages_of = _grouped(lines, "event_id"), _grouped(message_rows, "event_id")
        runs_of = _grouped(runs, "batch_id")
        views = [
            _view(row, lines_of[row.id], runs_of[row.batch_id], messages_of[row.id]) for row in rows
        ]
        views = [
            _dry_run(view, dry_lines.get(view.batch_id) or ())
            if view.event_type == EventType.DRY_RUN
            else view
            for view in views
        ]
        if graph is None:
            return views
        graph_of = _grouped(graph, "event_id")
        return [replace(view, graph=_graph_lines(graph_of[view.id])) for view in views]


def _incognito_time(project_id: ProjectId, event_id: UUID) -> datetime:
    """The time of an incognito event, which has no row. Errors: NotFound for any other id."""
    at = incognito_time(project_id, event_id)
    if at is None:
        raise NotFound(NO_SUCH_EVENT)
    return at


def _incognito_view(project_id: ProjectId, event_id: UUID, at: datetime) -> EventView:
    """The view of an incognito event: it has no content."""
    return EventView(
        id=event_id,
        scope=Scope(project_id),
        event_type=EventType.INCOGNITO,
        status=Status.SUCCEEDED,
        options={"incognito": True},
        failure_code=None,
        failure_detail=None,
        graph_status=None,
        note=NOT_STORED,
        mode=None,
        mode_reason=None,
        created_at=at,
        started_at=at,
        completed_at=at,
        replays=0,
        replayed_at=None,
        undone_at=None,
        batch_id=None,
        batch_events=0,
        paid=Paid(0, 0, 0, None),
        stage=None,
        attempts=0,
        wait_code=None,
        wait_until=None,
        wait_cause=None,
        messages=(),
        omitted=(),
        receipt=(),
        stages=(),
        graph=(),
    )


def _dry_run(view: EventView, lines: Sequence[Mapping[str, Any]]) -> EventView:
    """The view of a dry run: its messages are among its options, its receipt in an output."""
    messages = (view.options.get("dry_run") or {}).get("messages", ())
    return replace(
        view,
        receipt=[_receipt_line(line) for line in lines],
        messages=[
            {name: m[name] for name in ("role", "content", "name") if m[name]} for m in messages
        ],
        omitted=[
            {"message": ordinal, "part": o["part"], "type": o["kind"], "reason": o["reason"]}
            for ordinal, message in enumerate(messages)
            for o in message["omitted"]
        ],
        options=view.options | {"dry_run": True},
    )


def _receipt_line(line: Mapping[str, Any]) -> ReceiptLine:
    """A receipt line from JSON."""
    memory_id, suggestion_id = line["memory_id"], line.get("suggestion_id")
    return ReceiptLine(
        Outcome(line["outcome"]),
        UUID(memory_id) if memory_id else None,
        line["text"],
        line["previous_text"],
        line["reason"],
        line["message_ordinal"],
        UUID(suggestion_id) if suggestion_id else None,
        UUID(line["conflict_id"]) if line.get("conflict_id") else None,
    )


def _grouped(rows: Sequence[Row[Any]], name: str) -> dict[UUID, list[Row[Any]]]:
    groups = defaultdict[UUID, list[Row[Any]]](list)
    for row in rows:
        groups[getattr(row, name)].append(row)
    return groups


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


def _graph_lines(rows: Sequence[Row[Any]]) -> list[GraphReceiptLine]:
    """Build the lines of one event."""
    return [
        GraphReceiptLine(
            GraphOutcome(row.outcome),
            row.relation_id,
            row.memory_id,
            row.source,
            row.relation,
            row.destination,
            row.reason,
            row.message_ordinal,
        )
        for row in rows
    ]


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


def _view(
    row: Row[Any],
    lines: Sequence[Row[Any]],
    runs: Sequence[Row[Any]],
    message_rows: Sequence[Row[Any]],
) -> EventView:
    """Build a view from an event's row and the rows of its receipt, runs and messages."""
    active = row.status == Status.RUNNING and row.batch_id == row.lane_batch_id
    gathers = row.status == Status.PENDING and row.wait_code == GATHERING
    waiting = (active or gathers) and row.lane_state == "WAITING"
    return EventView(
        id=row.id,
        scope=Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id),
        event_type=row.event_type,
        status=Status(row.status),
        options=row.options or {},
        failure_code=row.failure_code,
        failure_detail=row.failure_detail,
        graph_status=row.graph_status,
        note=row.note,
        mode=row.mode,
        mode_reason=row.mode_reason,
        created_at=row.created_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
        replays=row.replays,
        replayed_at=row.replayed_at,
        undone_at=row.undone_at,
        batch_events=row.batch_events,
        batch_id=row.batch_id,
        paid=Paid(
            row.paid_calls or 0,
            row.paid_prompt_tokens or 0,
            row.paid_completion_tokens or 0,
            row.cost_nano_usd,
        ),
        stage=row.stage if active else None,
        attempts=row.attempts if active else 0,
        wait_code=row.wait_code if waiting else None,
        wait_until=row.due_at if waiting else None,
        wait_cause=row.wait_cause if waiting else None,
        messages=[
            {"role": m.role, "content": m.content} | ({"name": m.name} if m.name else {})
            for m in message_rows
        ],
        omitted=[
            {"message": m.ordinal} | left_out for m in message_rows for left_out in m.omitted or ()
        ],
        receipt=[
            ReceiptLine(
                Outcome(line.outcome),
                line.memory_id,
                line.text,
                line.previous_text,
                line.reason,
                line.message_ordinal,
                line.suggestion_id,
                line.conflict_id,
            )
            for line in lines
        ],
        stages=[
            StageRun(
                run.stage,
                run.ms,
                run.model,
                run.calls,
                run.prompt_tokens,
                run.completion_tokens,
                run.cost_usd,
                run.finished_at,
                run.prompt,
                run.code,
            )
            for run in runs
        ],
        truncated=row.options is None
        or any(
            "truncated" in excerpt._fields and excerpt.truncated
            for excerpt in (*lines, *message_rows)
        ),
    )
