"""An event as clients see it, and how it is built from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pipeline.accounting.costs import Paid, nano_usd
from pipeline.domain.events import EventType, Status
from pipeline.domain.facts import Outcome
from pipeline.domain.graph.values import GraphOutcome
from pipeline.domain.incognito import NOT_STORED
from pipeline.domain.lanes import GATHERING
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.row_values import value_of
from pipeline.ledger.statements import Record


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event with everything that clients see. `stage` is set while it runs, and the wait while
    it runs or gathers. The defaults are those of an event without content.
    """

    id: UUID
    scope: Scope
    event_type: str
    status: Status
    options: dict[str, Any]
    failure_code: str | None = None
    failure_detail: str | None = None
    graph_status: str | None = None
    note: str | None
    mode: str | None = None
    mode_reason: str | None = None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    replays: int = 0
    replayed_at: datetime | None = None
    undone_at: datetime | None = None
    batch_id: UUID | None = None
    batch_events: int = 0
    # The event's own share of the costs.
    paid: Paid = field(default_factory=Paid)
    stage: str | None = None
    attempts: int = 0
    wait_code: str | None = None
    wait_until: datetime | None = None
    wait_cause: str | None = None
    messages: Sequence[dict[str, Any]] = ()
    # Parts of the messages that were not kept, each with the number of its message.
    omitted: Sequence[dict[str, Any]] = ()
    receipt: Sequence[ReceiptLine] = ()
    stages: Sequence[StageRun] = ()
    # The effects on the graph. None: a page leaves them out.
    graph: Sequence[GraphReceiptLine] | None = None
    # On a page: texts were shortened, or messages, receipt lines or options left out.
    truncated: bool = False


def view_of(
    row: Record,
    lines: Sequence[Record],
    runs: Sequence[Record],
    message_rows: Sequence[Record],
) -> EventView:
    """Build a view from an event's row and the rows of its receipt, runs and messages."""
    active = row.status == Status.RUNNING and row.batch_id == row.lane_batch_id
    gathers = row.status == Status.PENDING and row.wait_code == GATHERING
    waiting = (active or gathers) and row.lane_state == "WAITING"
    return value_of(
        EventView,
        row,
        scope=Scope.of(row),
        status=Status(row.status),
        options=row.options or {},
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
        receipt=[value_of(ReceiptLine, line, outcome=Outcome(line.outcome)) for line in lines],
        stages=[value_of(StageRun, run) for run in runs],
        graph=None,
        truncated=row.options is None
        or any(excerpt.get("truncated") for excerpt in (*lines, *message_rows)),
    )


def dry_run_view(view: EventView, lines: Sequence[Mapping[str, Any]]) -> EventView:
    """The view of a dry run: its messages are among its options, its receipt in an output."""
    messages = (view.options.get("dry_run") or {}).get("messages", ())
    return replace(
        view,
        receipt=[receipt_line(line) for line in lines],
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


def receipt_line(line: Mapping[str, Any]) -> ReceiptLine:
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


def graph_lines(rows: Sequence[Record]) -> list[GraphReceiptLine]:
    """Build the lines of one event."""
    return [value_of(GraphReceiptLine, row, outcome=GraphOutcome(row.outcome)) for row in rows]


def incognito_view(project_id: ProjectId, event_id: UUID, at: datetime) -> EventView:
    """The view of an incognito event: it has no content."""
    return EventView(
        id=event_id,
        scope=Scope(project_id),
        event_type=EventType.INCOGNITO,
        status=Status.SUCCEEDED,
        options={"incognito": True},
        note=NOT_STORED,
        created_at=at,
        started_at=at,
        completed_at=at,
        graph=(),
    )
