"""Responses about erasures."""

from __future__ import annotations

from typing import Any

from pipeline.erasure.store import ErasureReceipt


def receipt(row: ErasureReceipt) -> dict[str, Any]:
    """Number of erased rows by store, and the status of the erasure."""
    return {
        "event_id": str(row.event_id),
        "entity_type": row.kind,
        "status": row.status,
        "erased": row.counts,
        "created_at": row.created_at,
        "completed_at": row.completed_at,
    }
