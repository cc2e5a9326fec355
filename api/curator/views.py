"""Responses about runs of the curator."""

from __future__ import annotations

from typing import Any

from pipeline.curator.store import CuratorRunView


def run(row: CuratorRunView) -> dict[str, Any]:
    """A run: its state, its numbers, and what it cost."""
    return {
        "id": str(row.id),
        "status": row.state,
        "origin": row.origin,
        "steps": row.steps,
        "suggested": row.suggested,
        "dropped": row.dropped,
        "malformed": row.malformed,
        "limits": {"suggestions": row.limits.suggestions, "tokens": row.limits.tokens},
        "usage": {
            "model": row.usage.model or None,
            "calls": row.usage.calls,
            "prompt_tokens": row.usage.prompt_tokens,
            "completion_tokens": row.usage.completion_tokens,
            "cost_usd": row.usage.cost_usd,
        },
        "code": row.code,
        "note": row.note,
        "created_at": row.created_at,
        "completed_at": row.completed_at,
    }
