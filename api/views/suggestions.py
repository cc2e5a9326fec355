"""Responses about suggestions."""

from __future__ import annotations

from typing import Any

from pipeline.suggestions.store import StoredSuggestion


def suggestion(row: StoredSuggestion) -> dict[str, Any]:
    """A change that waits for a person's decision."""
    return {
        "id": str(row.id),
        "kind": row.kind,
        "state": row.state,
        "origin": row.origin,
        "event_id": str(row.event_id) if row.event_id else None,
        "fact": row.fact_text,
        "targets": row.targets,
        "proposed_text": row.proposed_text,
        "reason": row.reason,
        "created_at": row.created_at,
        "decided_at": row.decided_at,
        "decided_by": row.decided_by,
    }
