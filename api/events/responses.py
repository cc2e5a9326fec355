"""Responses about events: receipts, stages and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired
from uuid import UUID

from typing_extensions import TypedDict

from api.events.usage import UsageJson, usage
from api.http.shared_responses import (
    EventStatus,
    Id,
    ScopedPageJson,
    ScopeIdsJson,
    json_of,
    scope_ids,
    words,
)
from pipeline.domain.events import Priority, Status
from pipeline.domain.facts import Outcome
from pipeline.domain.graph.values import GraphOutcome, GraphStatus
from pipeline.events.event_view import EventView, GraphReceiptLine, ReceiptLine, StageRun
from pipeline.events.store import Progress
from pipeline.events.undo import Undone


class ReceiptTextJson(TypedDict):
    """The text of a receipt line, where some clients read it."""

    memory: str | None


class ReceiptLineJson(TypedDict):
    """The outcome of one fact. `memory` equals `data.memory`, because clients read either.

    `suggestion_id` is there if a change was withheld, `conflict_id` if the fact contradicts another
    memory and nothing decides between them. `profile_fields`: fields of the user's profile that the
    memory fills. `message`: the number of its message, from 0.
    """

    id: Id | None
    event: Outcome
    memory: str | None
    data: ReceiptTextJson
    old_memory: str | None
    reason: str | None
    message: int | None
    suggestion_id: NotRequired[Id]
    conflict_id: NotRequired[Id]
    profile_fields: NotRequired[list[str]]


class OmittedJson(TypedDict, total=False):
    """A part of a message that was not kept."""

    message: int
    part: int | None
    kind: str
    reason: str


class GraphLineJson(TypedDict):
    """The effect of one fact on a relation."""

    event: GraphOutcome
    source: str
    relationship: str
    target: str
    reason: str
    relation_id: Id | None
    memory_id: Id | None
    message: int


class WaitingJson(TypedDict):
    """The reason of a wait. `until`: time of the next attempt at the latest.

    The attempt is made earlier if a probe shows that the dependency has recovered.
    """

    code: str
    cause: str | None
    until: datetime | None


class StageRunJson(TypedDict):
    """One run of a stage: its model, the version of its prompt, and its cost."""

    stage: str
    model: str | None
    prompt: str | None
    ms: float
    calls: int
    tokens: int
    code: str | None
    finished_at: datetime


class PayloadJson(ScopeIdsJson):
    """The request of an event."""

    messages: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]


class FilledFieldJson(TypedDict):
    """A field of a profile, and the memories behind it."""

    name: str
    memory_ids: list[Id]


class EventJson(TypedDict):
    """An event with its receipt. `prompts`: versions of the prompts, by name.

    `graph`: None on a page. `truncated`: on a page, texts were shortened or parts left out.
    `latency`: milliseconds from its creation to its end.
    """

    id: Id
    event_type: str
    status: EventStatus
    results: list[ReceiptLineJson]
    note: str | None
    priority: Priority
    mode: str | None
    mode_reason: str | None
    omitted: Sequence[OmittedJson]
    error: str | None
    code: str | None
    graph_status: Annotated[str, words(*GraphStatus)] | None
    graph_detail: str | None
    graph: list[GraphLineJson] | None
    stage: str | None
    waiting: WaitingJson | None
    usage: UsageJson
    stages: list[StageRunJson]
    prompts: dict[str, str]
    truncated: bool
    payload: PayloadJson
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    replays: int
    replayed_at: datetime | None
    undone_at: datetime | None
    latency: float | None
    profile_fields: NotRequired[list[FilledFieldJson]]


class EventsPageJson(ScopedPageJson[EventJson]):
    """A page of events.

    `bounded_parts`: `count` if there are at least that many events, `results` if events may be
    missing, because not all scopes are read.
    """


class ProgressJson(TypedDict):
    """Status, stage and wait of an event."""

    status: EventStatus
    stage: str | None
    waiting: WaitingJson | None


class SkippedJson(TypedDict):
    """A memory that an undo left as it is."""

    id: Id
    reason: str


class UndoneRelationsJson(TypedDict):
    """Numbers of relations that an undo removed and restored."""

    removed: int
    restored: int


class UndoneJson(TypedDict):
    """The result of an undo; `undone_at`: None after a dry run."""

    event_id: Id
    undone_at: datetime | None
    removed: list[Id]
    restored: list[Id]
    skipped: list[SkippedJson]
    relations: UndoneRelationsJson


class ReplayedJson(TypedDict):
    """The events that are replayed."""

    replayed: int
    event_ids: list[Id]


def event(row: EventView) -> EventJson:
    """An event with its receipt."""
    status, ended = shown(row.status), row.completed_at
    return json_of(
        EventJson,
        row,
        status=status,
        results=[receipt_line(line) for line in row.receipt],
        priority=row.options.get("priority") or Priority.NORMAL,
        error=row.failure_detail or row.failure_code if status is Status.FAILED else None,
        code=row.failure_code,
        graph_detail=row.failure_detail if status is Status.SUCCEEDED else None,
        graph=None if row.graph is None else [graph_line(line) for line in row.graph],
        waiting=waiting(row.wait_code, row.wait_cause, row.wait_until),
        usage=usage(row),
        stages=[stage(run) for run in row.stages],
        prompts=prompts(row.stages),
        payload={"messages": row.messages, **scope_ids(row.scope), "options": row.options},
        metadata=row.options.get("metadata") or None,
        updated_at=ended or row.started_at or row.created_at,
        latency=round((ended - row.created_at).total_seconds() * 1000, 1) if ended else None,
    )


def shown(status: Status) -> Status:
    """The status for clients: FAILED for CANCELLED, because clients know only four statuses."""
    return Status.FAILED if status is Status.CANCELLED else status


def progress(row: Progress) -> ProgressJson:
    """Status, stage and wait of an event."""
    wait = waiting(row.wait_code, row.wait_cause, row.wait_until)
    return json_of(ProgressJson, row, status=shown(row.status), waiting=wait)


def waiting(code: str | None, cause: str | None, until: datetime | None) -> WaitingJson | None:
    """The reason of a wait; None without one."""
    return {"code": code, "cause": cause, "until": until} if code else None


def undone(event_id: UUID, row: Undone) -> UndoneJson:
    """The result of an undo."""
    return {
        "event_id": str(event_id),
        "undone_at": row.at,
        "removed": [str(memory_id) for memory_id in row.gone],
        "restored": [str(memory_id) for memory_id in row.back],
        "skipped": [
            {"id": str(memory_id), "reason": why} for memory_id, why in row.skipped.items()
        ],
        "relations": {"removed": row.relations_gone, "restored": row.relations_back},
    }


def receipt_line(line: ReceiptLine) -> ReceiptLineJson:
    """The outcome of one fact."""
    response: ReceiptLineJson = {
        "id": str(line.memory_id) if line.memory_id else None,
        "event": line.outcome,
        "memory": line.text,
        "data": {"memory": line.text},
        "old_memory": line.previous_text,
        "reason": line.reason,
        "message": line.message_ordinal,
    }
    if line.suggestion_id:
        response["suggestion_id"] = str(line.suggestion_id)
    if line.conflict_id:
        response["conflict_id"] = str(line.conflict_id)
    return response


def add_filled(lines: Sequence[ReceiptLineJson], filled: Mapping[UUID, Sequence[str]]) -> None:
    """Add to receipt lines the fields of the user's profile that their memories fill."""
    names = {str(memory_id): list(fields) for memory_id, fields in filled.items()}
    for line in lines:
        if line["id"] in names:
            line["profile_fields"] = names[line["id"]]


def graph_line(line: GraphReceiptLine) -> GraphLineJson:
    """The effect of one fact on a relation."""
    return json_of(
        GraphLineJson,
        line,
        event=line.outcome,
        relationship=line.relation,
        target=line.destination,
        message=line.message_ordinal,
    )


def prompts(runs: Sequence[StageRun]) -> dict[str, str]:
    """Versions of the prompts of the model calls, by name; the newest one of each."""
    named = (run.prompt.partition("@") for run in runs if run.prompt)
    return {name: version for name, _, version in named}


def stage(run: StageRun) -> StageRunJson:
    """One run of a stage: its model, the version of its prompt, and its cost."""
    return json_of(
        StageRunJson,
        run,
        model=run.model or None,
        prompt=run.prompt or None,
        ms=round(run.ms, 1),
        tokens=run.prompt_tokens + run.completion_tokens,
    )
