"""Responses about conflicts."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.conflicts.store import Resolution, StoredConflict
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
    return json_of(
        ConflictJson,
        row,
        question=question(rows) if len(rows) > 1 else None,
        memories=[json_of(StatementJson, s, memory=s.text) for s in row.statements],
        resolution_event_id=row.resolved_by,
    )
