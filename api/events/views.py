"""Responses about events: receipts, stages and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from api.events.usage import usage
from api.memories.views import scope_ids
from pipeline.domain.events import Priority, Status
from pipeline.events.store import (
    EventEnd,
    EventView,
    GraphReceiptLine,
    Progress,
    ReceiptLine,
    StageRun,
)
from pipeline.events.undo import Undone


def event(row: EventView) -> dict[str, Any]:
    """An event with its receipt."""
    status = shown(row.status)
    return {
        "id": str(row.id),
        "event_type": row.event_type,
        "status": status,
        "results": [receipt_line(line) for line in row.receipt],
        "note": row.note,
        "priority": row.options.get("priority") or Priority.NORMAL,
        "mode": row.mode,
        "mode_reason": row.mode_reason,
        "omitted": row.omitted,
        "error": row.failure_detail or row.failure_code if status is Status.FAILED else None,
        "code": row.failure_code,
        "graph_status": row.graph_status,
        "graph_detail": row.failure_detail if status is Status.SUCCEEDED else None,
        "graph": None if row.graph is None else [graph_line(line) for line in row.graph],
        "stage": row.stage,
        "waiting": waiting(row.wait_code, row.wait_cause, row.wait_until),
        "usage": usage(row),
        "stages": [stage(run) for run in row.stages],
        "prompts": prompts(row.stages),
        "truncated": row.truncated,
        "payload": {"messages": row.messages, **scope_ids(row.scope), "options": row.options},
        "metadata": row.options.get("metadata") or None,
        "created_at": row.created_at,
        "updated_at": row.completed_at or row.started_at or row.created_at,
        "started_at": row.started_at,
        "completed_at": row.completed_at,
        "replays": row.replays,
        "replayed_at": row.replayed_at,
        "undone_at": row.undone_at,
        "latency": _ms_between(row.created_at, row.completed_at),
    }


def stored(event_id: UUID, end: EventEnd) -> dict[str, Any]:
    """The response to an add that waited for the end of its event."""
    failure = end.failure_detail or end.failure_code
    status = shown(end.status)
    error = failure if status is Status.FAILED else None
    response = {
        "message": error or end.note or "Memories stored.",
        "status": status,
        "event_id": str(event_id),
        "results": [receipt_line(line) for line in end.receipt],
    }
    return response | ({"omitted": end.omitted} if end.omitted else {})


def shown(status: Status) -> Status:
    """The status for clients: FAILED for CANCELLED, because clients know only four statuses."""
    return Status.FAILED if status is Status.CANCELLED else status


def progress(row: Progress) -> dict[str, Any]:
    """Status, stage and wait of an event."""
    return {
        "status": shown(row.status),
        "stage": row.stage,
        "waiting": waiting(row.wait_code, row.wait_cause, row.wait_until),
    }


def waiting(code: str | None, cause: str | None, until: datetime | None) -> dict[str, Any] | None:
    """The reason of a wait. `until`: time of the next attempt at the latest.

    The attempt is made earlier if a probe shows that the dependency has recovered.
    """
    return {"code": code, "cause": cause, "until": until} if code else None


def undone(event_id: UUID, row: Undone) -> dict[str, Any]:
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


def receipt_line(line: ReceiptLine) -> dict[str, Any]:
    """The outcome of one fact. `memory` equals `data.memory`, because clients read either.

    `suggestion_id` is there if a change was withheld, `conflict_id` if the fact contradicts another
    memory and nothing decides between them.
    """
    withheld = {"suggestion_id": str(line.suggestion_id)} if line.suggestion_id else {}
    return {
        "id": str(line.memory_id) if line.memory_id else None,
        "event": line.outcome,
        "memory": line.text,
        "data": {"memory": line.text},
        "old_memory": line.previous_text,
        "reason": line.reason,
        "message": line.message_ordinal,
        **withheld,
        **({"conflict_id": str(line.conflict_id)} if line.conflict_id else {}),
    }


def add_filled(lines: Sequence[dict[str, Any]], filled: Mapping[UUID, Sequence[str]]) -> None:
    """Add to receipt lines the fields of the user's profile that their memories fill."""
    names = {str(memory_id): list(fields) for memory_id, fields in filled.items()}
    for line in lines:
        if line["id"] in names:
            line["profile_fields"] = names[line["id"]]


def graph_line(line: GraphReceiptLine) -> dict[str, Any]:
    """The effect of one fact on a relation."""
    return {
        "event": line.outcome,
        "source": line.source,
        "relationship": line.relation,
        "target": line.destination,
        "reason": line.reason,
        "relation_id": str(line.relation_id) if line.relation_id else None,
        "memory_id": str(line.memory_id) if line.memory_id else None,
        "message": line.message_ordinal,
    }


def prompts(runs: Sequence[StageRun]) -> dict[str, str]:
    """Versions of the prompts of the model calls, by name; the newest one of each."""
    named = (run.prompt.partition("@") for run in runs if run.prompt)
    return {name: version for name, _, version in named}


def stage(run: StageRun) -> dict[str, Any]:
    """One run of a stage: its model, the version of its prompt, and its cost."""
    return {
        "stage": run.stage,
        "model": run.model or None,
        "prompt": run.prompt or None,
        "ms": round(run.ms, 1),
        "calls": run.calls,
        "tokens": run.prompt_tokens + run.completion_tokens,
        "code": run.code,
        "finished_at": run.finished_at,
    }


def _ms_between(start: datetime, end: datetime | None) -> float | None:
    return round((end - start).total_seconds() * 1000, 1) if end else None
