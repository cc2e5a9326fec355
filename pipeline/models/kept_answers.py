"""Answers of models that dry runs have paid for, kept for a limited time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.scope import Scope
from pipeline.ledger.tables import kept_answers


class KeptAnswers:
    """Store of kept answers. `kept_for`: their lifetime."""

    def __init__(self, engine: AsyncEngine, *, kept_for: timedelta) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._kept_for = kept_for

    async def get(self, scope: Scope, digest: bytes) -> Mapping[str, Any] | None:
        """The kept answer to the question with this digest, or None."""
        table = kept_answers.c
        query = select(table.answer).where(
            table.lane_id == scope.lane_id, table.digest == digest, table.expires_at > func.now()
        )
        async with self._engine.connect() as connection:
            answer: Mapping[str, Any] | None = await connection.scalar(query)
        return answer

    async def keep(self, scope: Scope, digest: bytes, answer: Mapping[str, Any]) -> None:
        """Keep an answer. A repeated call changes nothing but its lifetime."""
        until = {"expires_at": func.now() + self._kept_for}
        query = insert(kept_answers).values(
            lane_id=scope.lane_id,
            digest=digest,
            project_id=scope.project_id,
            answer=answer,
            **until,
        )
        again = query.on_conflict_do_update(index_elements=["lane_id", "digest"], set_=until)
        async with self._engine.connect() as connection:
            await connection.execute(again)
