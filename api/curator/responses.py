"""Responses about runs of the curator."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from typing_extensions import TypedDict

from api.events.usage import PaidJson
from api.http.shared_responses import Id, words
from pipeline.curator.store import CuratorRunView


class CuratorLimitsJson(TypedDict):
    """The budget of a run."""

    suggestions: int
    tokens: int


class CuratorUsageJson(PaidJson):
    """The cost of a run."""

    model: str | None


class CuratorRunJson(TypedDict):
    """A run of the curator: its state, its numbers, and its cost."""

    id: Id
    status: Annotated[str, words("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")]
    origin: Annotated[str, words("request", "schedule")]
    steps: int
    suggested: int
    dropped: int
    malformed: int
    limits: CuratorLimitsJson
    usage: CuratorUsageJson
    code: str | None
    note: str | None
    created_at: datetime
    completed_at: datetime | None


def run(row: CuratorRunView) -> CuratorRunJson:
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
