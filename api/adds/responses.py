"""Responses to adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, cast
from uuid import UUID

from typing_extensions import TypedDict

from api.events.responses import OmittedJson, ReceiptLineJson, receipt_line, shown
from api.http.shared_responses import EventStatus, Id
from pipeline.domain.events import Status
from pipeline.events.store import EventEnd


class RemarksJson(TypedDict, total=False):
    """Names of keys that an add ignores, and a warning about it; absent without a remark."""

    ignored: list[str]
    warning: str


class StoredJson(RemarksJson):
    """The receipt of an event that the response waited for; PENDING if it has not ended in time."""

    event_id: Id
    status: EventStatus
    results: list[ReceiptLineJson]
    message: NotRequired[str]
    omitted: NotRequired[Sequence[OmittedJson]]


class QueuedJson(RemarksJson):
    """An accepted add. Poll its event for the receipt."""

    event_id: Id
    status: EventStatus


class QueuedLineJson(QueuedJson):
    """An accepted add, in the list that version 1 answers."""

    message: str


# Version 1 answers with the lines of the receipt, or with one line for an accepted add.
AddLine = ReceiptLineJson | QueuedLineJson


class AddResultsJson(TypedDict):
    """The results of an add, as version 1.1 answers them. Relations are not part of an answer."""

    results: list[AddLine]
    relations: list[Any]


def stored(event_id: UUID, end: EventEnd) -> StoredJson:
    """The response to an add that waited for the end of its event."""
    failure = end.failure_detail or end.failure_code
    status = shown(end.status)
    error = failure if status is Status.FAILED else None
    response: StoredJson = {
        "message": error or end.note or "Memories stored.",
        "status": status,
        "event_id": str(event_id),
        "results": [receipt_line(line) for line in end.receipt],
    }
    if end.omitted:
        response["omitted"] = cast("Sequence[OmittedJson]", end.omitted)
    return response
