"""Responses about private runs."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.tenants.private_runs import Privacy, PrivateRun


class PrivateRunJson(TypedDict):
    """A private run. `erasure_event_id`: the receipt of its erasure."""

    run_id: str
    privacy: Privacy
    expires_at: datetime | None
    erasure_event_id: Id
    created_at: datetime


def private_run(row: PrivateRun) -> PrivateRunJson:
    """A private run."""
    return json_of(PrivateRunJson, row, erasure_event_id=row.erasure_id)
