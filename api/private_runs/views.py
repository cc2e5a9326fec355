"""Responses about private runs."""

from __future__ import annotations

from typing import Any

from pipeline.tenants.private_runs import PrivateRun


def private_run(row: PrivateRun) -> dict[str, Any]:
    """A private run."""
    return {
        "run_id": row.run_id,
        "privacy": row.privacy,
        "expires_at": row.expires_at,
        "erasure_event_id": str(row.erasure_id),
        "created_at": row.created_at,
    }
