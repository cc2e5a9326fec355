"""Responses about summaries of conversations."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import PageKeysJson, json_of
from pipeline.domain.summaries import SummaryVersion


class SummaryVersionJson(TypedDict):
    """One version of a summary. `messages`: the number that it added to the one before."""

    version: int
    summary: str
    current: bool
    messages: int
    model: str
    prompt: str
    created_at: datetime


class SummaryStateJson(TypedDict):
    """Messages since the last version; `reason`: why the last try made none."""

    messages: int
    tokens: int
    due_at: datetime | None
    reason: str | None


class SummaryPageJson(PageKeysJson):
    """A page of the versions of a summary."""

    results: list[SummaryVersionJson]
    pending: SummaryStateJson


def version(row: SummaryVersion) -> SummaryVersionJson:
    """One version of a summary."""
    return json_of(SummaryVersionJson, row, summary=row.text)
