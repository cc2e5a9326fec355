"""Responses about conflicts."""

from __future__ import annotations

from typing import Any

from pipeline.conflicts.store import MemberStatement, StoredConflict
from pipeline.domain.conflicts import question


def conflict(row: StoredConflict) -> dict[str, Any]:
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


def statement(row: MemberStatement) -> dict[str, Any]:
    """A statement of a conflict. `standing`: its memory still states it; no text if deleted."""
    return {
        "memory_id": str(row.memory_id),
        "memory": row.text,
        "speaker": row.speaker,
        "said_at": row.said_at,
        "standing": row.standing,
    }
