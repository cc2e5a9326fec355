"""Recorded answers of models, and how they apply to a copy of the scope.

A recorded answer refers to memories and relations by their ids in the original scope; the copies
have other ids and the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import and_, select

from pipeline.domain.scope import Scope
from pipeline.ledger.fetching import fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, relations, stage_runs


class Recordings(LedgerStore):
    """Store of recorded answers. It only reads."""

    async def outputs(self, batch_id: UUID) -> Mapping[str, Any]:
        """Outputs of the batch's stages, by stage. Those past their retention time are missing."""
        query = select(stage_runs.c.stage, stage_runs.c.output).where(
            stage_runs.c.batch_id == batch_id, stage_runs.c.output.is_not(None)
        )
        return {row.stage: row.output for row in await fetch(self._single, query)}

    async def same_relations(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, UUID]:
        """For relations of another scope, the current relation of `scope` that equals each.

        Equal: the same relation name between entities of the same names.
        """
        if not ids:
            return {}
        recorded, ours = relations.alias("recorded"), relations.alias("ours")
        ends = {name: (entities.alias(), entities.alias()) for name in ("source", "destination")}
        query = (
            select(recorded.c.id.label("recorded"), ours.c.id.label("ours"))
            .select_from(recorded)
            .join(ours, and_(ours.c.relation == recorded.c.relation, ours.c.expired_at.is_(None)))
            .where(ours.c.lane_id == scope.lane_id, recorded.c.id.in_(ids))
            .order_by(ours.c.id)
        )
        for name, (their, our) in ends.items():
            query = query.join(their, their.c.id == recorded.c[f"{name}_id"]).join(
                our, and_(our.c.id == ours.c[f"{name}_id"], our.c.name_key == their.c.name_key)
            )
        return {row.recorded: row.ours for row in await fetch(self._single, query)}
