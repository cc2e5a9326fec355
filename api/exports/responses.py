"""Responses about exports and summaries of all memories that match."""

from __future__ import annotations

from uuid import UUID

from typing_extensions import TypedDict

from api.http.shared_responses import DoneJson, EventStatus, Id
from pipeline.domain.events import Status


class ExportedJson(DoneJson):
    """An accepted export; `id` is that of its event."""

    id: Id


class NotReadyJson(ExportedJson):
    """An export or a summary that is not ready."""

    status: EventStatus


class SummaryJson(TypedDict):
    """A summary of memories; None if there are none."""

    summary: str | None


def not_ready(event_id: UUID) -> NotReadyJson:
    """The response while the event has not ended."""
    message = "Not ready yet; ask again, or poll the event."
    return {"message": message, "id": str(event_id), "status": Status.PENDING}
