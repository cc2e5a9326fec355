"""Responses about seals."""

from __future__ import annotations

from typing import Any

from pipeline.seals.chain import Fault
from pipeline.seals.store import Checkpoint
from pipeline.seals.verification import VerifiedPage


def page(row: VerifiedPage) -> dict[str, Any]:
    """A page of a verification. `ok` is false without tamper evidence: nothing was verified."""
    return {
        "ok": row.enabled and not row.faults,
        "enabled": row.enabled,
        "state": row.state.value,
        "counter": row.counter,
        "sealed": row.sealed,
        "waiting": row.waiting,
        "faults": [fault(row_fault) for row_fault in row.faults],
        "next": row.next,
    }


def fault(row: Fault) -> dict[str, Any]:
    """A row that differs from its seal. `number`: replays, line or version."""
    return {
        "problem": row.problem,
        "kind": row.kind,
        "id": str(row.row_id) if row.row_id else None,
        "number": row.row_no,
        "lane_id": str(row.lane_id) if row.lane_id else None,
    }


def checkpoint(row: Checkpoint) -> dict[str, Any]:
    """A recorded head of a project."""
    return {
        "number": row.number,
        "counter": row.counter,
        "lanes": row.lanes,
        "root": row.root,
        "sealed_until": row.sealed_until,
        "created_at": row.created_at,
        "valid": row.valid,
    }
