"""All messages of one user, in parts, for a download."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, tuple_

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import fetch
from pipeline.ledger.filter_conditions import shown
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import lanes, messages

# Messages of one part; the texts of a part fit easily into memory.
PART = 100


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message in a scope of the user, as it was sent."""

    role: str
    name: str | None
    content: str
    said_at: datetime
    agent_id: str | None
    app_id: str | None
    run_id: str | None


class UserMessages(LedgerStore):
    """Reads of all messages of a user."""

    async def parts(self, project_id: ProjectId, user_id: str) -> AsyncIterator[list[UserMessage]]:
        """Yield the messages of each scope in order, up to PART at a time.

        Those of temporary runs are left out: only reads that name such a run show it.
        """
        own = select(lanes.c.id, lanes.c.agent_id, lanes.c.app_id, lanes.c.run_id).where(
            lanes.c.project_id == project_id, lanes.c.user_id == user_id, shown(lanes)
        )
        for lane in await fetch(self._single, own.order_by(lanes.c.id)):
            ids = columns_of(lane, "agent_id", "app_id", "run_id")
            after = (-1, -1)
            while rows := await self._after(lane.id, after):
                after = (rows[-1].seq, rows[-1].ordinal)
                yield [value_of(UserMessage, row, **ids) for row in rows]

    async def _after(self, lane_id: UUID, after: tuple[int, int]) -> Sequence[Row[Any]]:
        """The next part of a lane's messages."""
        names = ("seq", "ordinal", "role", "name", "content", "said_at")
        place = tuple_(messages.c.seq, messages.c.ordinal)
        query = select(*(messages.c[name] for name in names)).where(
            messages.c.lane_id == lane_id, place > tuple_(*after)
        )
        return await fetch(
            self._single, query.order_by(messages.c.seq, messages.c.ordinal).limit(PART)
        )
