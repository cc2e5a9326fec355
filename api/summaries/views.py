"""Responses about summaries of conversations."""

from __future__ import annotations

from typing import Any

from pipeline.domain.summaries import SummaryState, SummaryVersion


def version(row: SummaryVersion) -> dict[str, Any]:
    """One version of a summary. `messages`: the number that it added to the one before."""
    return {
        "version": row.version,
        "summary": row.text,
        "current": row.current,
        "messages": row.messages,
        "model": row.model,
        "prompt": row.prompt,
        "created_at": row.created_at,
    }


def state(row: SummaryState) -> dict[str, Any]:
    """Messages since the last version; `reason`: why the last try made none."""
    return {
        "messages": row.messages,
        "tokens": row.tokens,
        "due_at": row.due_at,
        "reason": row.reason,
    }
