"""Responses about the audit log."""

from __future__ import annotations

from typing import Any

from pipeline.tenants.audit import AuditEntry


def entry(row: AuditEntry) -> dict[str, Any]:
    """An entry of the audit log."""
    return {
        "id": row.id,
        "at": row.at,
        "key_id": str(row.key_id),
        "key": row.key,
        "member": row.member,
        "user_token_id": str(row.token_id) if row.token_id else None,
        "action": row.action,
        "target": str(row.target) if row.target else None,
        "status": row.status,
    }
