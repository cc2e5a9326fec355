"""Responses about seals."""

from __future__ import annotations

from typing import Any

from pipeline.seals.store import Check, Fault


def check(row: Check) -> dict[str, Any]:
    """The result of a verification."""
    return {
        "ok": not row.faults,
        "sealed": row.sealed,
        "waiting": row.waiting,
        "faults": [fault(row_fault) for row_fault in row.faults],
    }


def fault(row: Fault) -> dict[str, Any]:
    """A row that differs from its seal. `number`: replays, line or version."""
    return {
        "problem": row.problem,
        "kind": row.kind,
        "id": str(row.row_id) if row.row_id else None,
        "number": row.row_no,
        "lane_id": str(row.lane_id),
    }
