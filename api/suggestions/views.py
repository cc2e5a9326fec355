"""Responses about suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from api.events.views import receipt_line
from pipeline.domain.suggestions import ShownChange, shown_changes
from pipeline.events.store import ReceiptLine
from pipeline.suggestions.decisions import AcceptedSuggestion
from pipeline.suggestions.service import Decided
from pipeline.suggestions.store import StoredSuggestion, Target

# Maximum number of characters of a quoted message.
LONGEST_QUOTE = 2_000


def suggestion(row: StoredSuggestion) -> dict[str, Any]:
    """A change that waits for a person's decision: diff, sources, and what it loses."""
    texts = [(target.memory_id, target.text) for target in row.targets]
    return {
        "id": str(row.id),
        "kind": row.kind,
        "state": row.state,
        "origin": row.origin,
        "event_id": str(row.event_id) if row.event_id else None,
        "fact": row.fact_text,
        "targets": [
            {"memory_id": str(target.memory_id), "version": target.version}
            for target in row.targets
        ],
        "changes": [change(c) for c in shown_changes(row.kind, texts, row.proposed_text)],
        "sources": [source(target) for target in row.targets],
        "proposed_text": row.proposed_text,
        "reason": row.reason,
        "created_at": row.created_at,
        "decided_at": row.decided_at,
        "decided_by": row.decided_by,
        "decision_event_id": str(row.decision_event_id) if row.decision_event_id else None,
    }


def change(row: ShownChange) -> dict[str, Any]:
    """One memory before and after the change."""
    return {
        "memory_id": str(row.memory_id),
        "before": row.before,
        "after": row.after,
        "merged_into": str(row.merged_into) if row.merged_into else None,
        "lost": list(row.lost),
    }


def source(row: Target) -> dict[str, Any]:
    """The message that a memory was extracted from; without a quote, a person wrote the memory."""
    return {
        "memory_id": str(row.memory_id),
        "said_at": row.said_at,
        "speaker": row.speaker,
        "quote": row.quote[:LONGEST_QUOTE] if row.quote else None,
    }


def would_accept(suggestion_id: UUID, planned: AcceptedSuggestion) -> dict[str, Any]:
    """The receipt that an acceptance would get."""
    lines = [
        ReceiptLine(
            c.outcome, c.before.id, c.text, c.before.text, c.reason, 0, suggestion_id=suggestion_id
        )
        for c in planned.changes
    ]
    return {
        "dry_run": True,
        "note": planned.note,
        "results": [receipt_line(line) for line in lines],
    }


def decided(rows: Sequence[Decided]) -> dict[str, Any]:
    """The results of many decisions."""
    return {
        "decided": sum(row.error is None for row in rows),
        "results": [
            {
                "id": str(row.suggestion_id),
                "event_id": str(row.event_id) if row.event_id else None,
                "error": row.error,
            }
            for row in rows
        ],
    }
