"""Responses about users' tokens, and what they download."""

from __future__ import annotations

from typing import Any

from pipeline.tenants.user_tokens import UserToken


def token(row: UserToken) -> dict[str, Any]:
    """A token without its secret."""
    return {
        "id": str(row.id),
        "user_id": row.user_id,
        "rights": list(row.rights),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
