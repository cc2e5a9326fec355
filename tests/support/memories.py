"""Memories as values, for tests without a ledger."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pipeline.domain.memories import Memory
from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope


def active_memory(number: int, scope: Scope, text: str, said_at: datetime) -> Memory:
    """An active memory that a user stated at this time. `number`: its id."""
    return Memory(
        id=UUID(int=number),
        lane_id=scope.lane_id,
        scope=scope,
        text=text,
        metadata={},
        attributed_to=Role.USER,
        state="ACTIVE",
        immutable=False,
        expiration_date=None,
        version=1,
        event_id=None,
        message_ordinal=None,
        said_at=said_at,
        valid_from=said_at,
    )
