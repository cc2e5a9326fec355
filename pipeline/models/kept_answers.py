"""Answers of models that dry runs have paid for, kept for a limited time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import LargeBinary, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.scope import Scope
from pipeline.ledger.fetching import execute, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import kept_answers, lanes


class KeptAnswers(LedgerStore):
    """Store of kept answers. `kept_for`: their lifetime."""

    def __init__(self, engine: AsyncEngine, *, kept_for: timedelta) -> None:
        super().__init__(engine)
        self._kept_for = kept_for

    async def get(self, scope: Scope, digest: bytes) -> Mapping[str, Any] | None:
        """The kept answer to the question with this digest, or None."""
        table = kept_answers.c
        query = select(table.answer).where(
            table.lane_id == scope.lane_id, table.digest == digest, table.expires_at > func.now()
        )
        answer: Mapping[str, Any] | None = await fetch_value(self._single, query)
        return answer

    async def keep(
        self, scope: Scope, digest: bytes, answer: Mapping[str, Any], *, fence: int
    ) -> None:
        """Keep an answer. A repeated call changes nothing but its lifetime.

        `fence`: that of the activation that asked. If the lane has moved on, for example because
        the scope was erased during the model's call, nothing is kept.
        """
        until = func.now() + self._kept_for
        lane = (
            select(
                lanes.c.id,
                literal(digest, LargeBinary),
                lanes.c.project_id,
                literal(answer, JSONB),
                until,
            )
            .where(lanes.c.id == scope.lane_id, lanes.c.fence == fence)
            .with_for_update(read=True, key_share=True)
        )
        names = ["lane_id", "digest", "project_id", "answer", "expires_at"]
        again = (
            insert(kept_answers)
            .from_select(names, lane)
            .on_conflict_do_update(index_elements=["lane_id", "digest"], set_={"expires_at": until})
        )
        await execute(self._single, again)
