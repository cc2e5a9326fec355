"""Events of an owner with many lanes: lane by lane, or by the feed of the project."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, literal_column, select, true
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.filters import EventFilter
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.filter_conditions import events_matching, shown
from pipeline.ledger.tables import events, lanes

# Number of lanes up to which the events of an owner are read lane by lane.
FEW_LANES = 1_000


async def few_lanes(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter
) -> list[UUID] | None:
    """Ids of the lanes with the filter's entity ids. None: more than FEW_LANES."""
    first = _lanes_of(project_id, wanted).limit(FEW_LANES + 1)
    async with engine.connect() as connection:
        rows = (await connection.execute(first)).all()
    ids = [row.id for row in rows]
    return ids if len(ids) <= FEW_LANES else None


def _lanes_of(project_id: ProjectId, wanted: EventFilter) -> Select[tuple[UUID]]:
    """Select the lanes with the filter's entity ids."""
    ids = [lanes.c[name] == value for name, value in wanted.scope_ids.items()]
    return select(lanes.c.id).where(
        lanes.c.project_id == project_id, shown(lanes, wanted.scope_ids), *ids
    )


def by_lane(project_id: ProjectId, wanted: EventFilter) -> Select[Any]:
    """Select the matching events, lane after lane: their count needs no order.

    OFFSET 0 keeps the planner from reading all events of the project instead.
    """
    none: ColumnElement[int] = literal_column("0")
    its = _lanes_of(project_id, wanted).offset(none).subquery("its")
    condition = events_matching(project_id, replace(wanted, scope_ids={}), private=True)
    of_lane = select(events.c.id).where(events.c.lane_id == its.c.id, condition).offset(none)
    each = of_lane.lateral("each")
    return select(each.c.id).select_from(its.join(each, true()))
