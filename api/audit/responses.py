"""Responses about the audit log."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.tenants.audit import AuditEntry


class AuditEntryJson(TypedDict):
    """An entry of the audit log. `status`: None if the process ended before the response."""

    id: int
    at: datetime
    key_id: Id
    key: str | None
    member: str | None
    user_token_id: Id | None
    action: str
    target: Id | None
    status: int | None


class AuditPageJson(TypedDict):
    """A page of the audit log. `next`: the value of `before` for the next one."""

    next: int | None
    results: list[AuditEntryJson]


def entry(row: AuditEntry) -> AuditEntryJson:
    """An entry of the audit log."""
    return json_of(AuditEntryJson, row, user_token_id=row.token_id)
