"""Responses about conflicts."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import Id
from pipeline.conflicts.store import MemberStatement, Resolution, StoredConflict
from pipeline.domain.conflicts import ConflictState, question


class StatementJson(TypedDict):
    """A statement of a conflict. `standing`: its memory still states it."""

    memory_id: Id
    memory: str | None
    speaker: str | None
    said_at: datetime
    standing: bool


class ConflictJson(TypedDict):
    """Statements that cannot both hold. `question`: the one to ask the person."""

    id: Id
    state: ConflictState
    slot: str
    question: str | None
    memories: list[StatementJson]
    event_id: Id
    resolution: Resolution | None
    resolution_event_id: Id | None
    created_at: datetime
    resolved_at: datetime | None


def conflict(row: StoredConflict) -> ConflictJson:
    """A conflict: the question to ask, the statements, and the resolution."""
    rows = [(s.text, s.speaker, s.said_at) for s in row.statements if s.standing and s.text]
    return {
        "id": str(row.id),
        "state": row.state,
        "slot": row.slot,
        "question": question(rows) if len(rows) > 1 else None,
        "memories": [statement(s) for s in row.statements],
        "event_id": str(row.event_id),
        "resolution": row.resolution,
        "resolution_event_id": str(row.resolved_by) if row.resolved_by else None,
        "created_at": row.created_at,
        "resolved_at": row.resolved_at,
    }


def statement(row: MemberStatement) -> StatementJson:
    """A statement of a conflict. `standing`: its memory still states it; no text if deleted."""
    return {
        "memory_id": str(row.memory_id),
        "memory": row.text,
        "speaker": row.speaker,
        "said_at": row.said_at,
        "standing": row.standing,
    }
