"""Answers to exports and summaries, as their stage saved them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, and_, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.domain.errors import NotFound
from pipeline.domain.events import EventType, StageName
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import CURRENT, Snapshot
from pipeline.ledger.fetching import fetch_value
from pipeline.ledger.filter_conditions import one_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import events, stage_runs

SNAPSHOT = TypeAdapter(Snapshot)
FILTERS: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])
NO_EXPORT = "No memory export request found"


class Answers(LedgerStore):
    """Store of answers."""

    async def of(self, project_id: ProjectId, event_id: UUID) -> dict[str, Any]:
        """Return the saved answer of an event; empty until there is one."""
        query = (
            select(stage_runs.c.output["answer"])
            .join(events, events.c.batch_id == stage_runs.c.batch_id)
            .where(
                events.c.project_id == project_id,
                events.c.id == event_id,
                stage_runs.c.stage == StageName.EXTRACT,
            )
        )
        return dict(await fetch_value(self._single, query) or {})

    async def export(
        self,
        project_id: ProjectId,
        *,
        event_id: UUID | None,
        filters: Mapping[str, Any],
        snapshot: Snapshot = CURRENT,
    ) -> UUID:
        """Return the id of an export: `event_id`, or the newest one with exactly these filters.

        `snapshot`: the time of the memories that it read. Errors: NotFound.
        """
        question: ColumnElement[Any] = events.c.options["question"]
        at = None if snapshot.is_current else SNAPSHOT.dump_python(snapshot, mode="json")
        stored = FILTERS.dump_python(filters, mode="json")  # times as the event's options have them
        same = and_(
            question["filters"] == cast(stored, JSONB),
            func.coalesce(question["snapshot"], cast(JSONB.NULL, JSONB)) == cast(at, JSONB),
        )
        which = events.c.id == event_id if event_id else same
        query = (
            select(events.c.id)
            .where(
                events.c.project_id == project_id,
                one_of(events.c.event_type, [EventType.EXPORT]),
                which,
            )
            .order_by(events.c.created_at.desc(), events.c.id)
            .limit(1)
        )
        export_id: UUID | None = await fetch_value(self._single, query)
        if export_id is None:
            raise NotFound(NO_EXPORT)
        return export_id
