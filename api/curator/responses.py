"""Responses about runs of the curator."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from typing_extensions import TypedDict

from api.events.usage import PaidJson
from api.http.shared_responses import Id, json_of, words
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
    return json_of(
        CuratorRunJson,
        row,
        status=row.state,
        limits=json_of(CuratorLimitsJson, row.limits),
        usage={"model": row.usage.model or None, **json_of(PaidJson, row.usage)},
    )
