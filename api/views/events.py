"""Responses about events: receipts, stages and progress."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from api.views.memories import scope_ids
from api.views.usage import usage
from pipeline.domain.events import Status
from pipeline.events.store import EventEnd, EventView, Progress, ReceiptLine, StageRun
from pipeline.events.undo import Undone


def event(found: EventView) -> dict[str, Any]:
    """An event with its receipt."""
    status = shown(found.status)
    return {
        "id": str(found.id),
        "event_type": found.event_type,
        "status": status,
        "results": [receipt_line(line) for line in found.receipt],
        "note": found.note,
        "omitted": found.omitted,
        "error": found.failure_detail or found.failure_code if status is Status.FAILED else None,
        "code": found.failure_code,
        "graph_status": found.graph_status,
        "stage": found.stage,
        "waiting": waiting(found.wait_code, found.wait_cause, found.wait_until),
        "usage": usage(found),
        "stages": [stage(run) for run in found.stages],
        "truncated": found.truncated,
        "payload": {"messages": found.messages, **scope_ids(found.scope), "options": found.options},
        "metadata": found.options.get("metadata") or None,
        "created_at": found.created_at,
        "updated_at": found.completed_at or found.started_at or found.created_at,
        "started_at": found.started_at,
        "completed_at": found.completed_at,
        "replays": found.replays,
        "replayed_at": found.replayed_at,
        "undone_at": found.undone_at,
        "latency": _ms_between(found.created_at, found.completed_at),
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
    """CANCELLED is shown as FAILED: clients know no fifth status."""
    return Status.FAILED if status is Status.CANCELLED else status


def progress(found: Progress) -> dict[str, Any]:
    return {
        "status": shown(found.status),
        "stage": found.stage,
        "waiting": waiting(found.wait_code, found.wait_cause, found.wait_until),
    }


def waiting(code: str | None, cause: str | None, until: datetime | None) -> dict[str, Any] | None:
    """`until`: the next try at the latest; it comes earlier once the dependency answers a probe."""
    return {"code": code, "cause": cause, "until": until} if code else None


def undone(event_id: UUID, found: Undone) -> dict[str, Any]:
    return {
        "event_id": str(event_id),
        "undone_at": found.at,
        "removed": [str(one) for one in found.gone],
        "restored": [str(one) for one in found.back],
        "skipped": [{"id": str(one), "reason": why} for one, why in found.skipped.items()],
        "relations": {"removed": found.relations_gone, "restored": found.relations_back},
    }


def receipt_line(line: ReceiptLine) -> dict[str, Any]:
    """One fact's outcome; `memory` and `data.memory` both, for clients read one or the other."""
    return {
        "id": str(line.memory_id) if line.memory_id else None,
        "event": line.outcome,
        "memory": line.text,
        "data": {"memory": line.text},
        "old_memory": line.previous_text,
        "reason": line.reason,
        "message": line.message_ordinal,
    }


def stage(run: StageRun) -> dict[str, Any]:
    return {
        "stage": run.stage,
        "ms": round(run.ms, 1),
        "calls": run.calls,
        "tokens": run.prompt_tokens + run.completion_tokens,
        "code": run.code,
        "finished_at": run.finished_at,
    }


def _ms_between(start: datetime, end: datetime | None) -> float | None:
    return round((end - start).total_seconds() * 1000, 1) if end else None
