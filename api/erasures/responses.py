"""Responses about erasures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from typing_extensions import TypedDict

from api.http.shared_responses import EventStatus, Id, StartedJson, json_of
from pipeline.erasure.store import ErasureReceipt


class ErasingJson(StartedJson):
    """A started erasure. Its receipt is that of the event."""

    status: EventStatus


class ErasureReceiptJson(TypedDict):
    """Number of erased rows by store, and the status of the erasure."""

    event_id: Id
    entity_type: str
    status: EventStatus
    erased: Mapping[str, int]
    created_at: datetime
    completed_at: datetime | None


def receipt(row: ErasureReceipt) -> ErasureReceiptJson:
    """Number of erased rows by store, and the status of the erasure."""
    return json_of(ErasureReceiptJson, row, entity_type=row.kind, erased=row.counts)
