"""Conditions of a page of events: of an owner, lane by lane or by the feed of the project."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, literal_column, select, true
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.filters import EventFilter
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.filter_conditions import among, events_matching, shown, shown_lane
from pipeline.ledger.tables import events, lanes

# Number of lanes up to which the events of an owner are read lane by lane.
FEW_LANES = 1_000
# Maximum number of lanes, the newest ones, whose events are counted.
MOST_LANES = 2 * COUNTED


async def few_lanes(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter
) -> list[UUID] | None:
    """Ids of the lanes with the filter's entity ids. None: more than FEW_LANES."""
    first = _lanes_of(project_id, wanted).limit(FEW_LANES + 1)
    async with engine.connect() as connection:
        rows = (await connection.execute(first)).all()
    ids = [row.id for row in rows]
    return ids if len(ids) <= FEW_LANES else None


async def matching_events(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter
) -> tuple[ColumnElement[bool], bool]:
    """The condition of the events. True with it: it names the few lanes of the filter."""
    where = events_matching(project_id, wanted)
    few = await few_lanes(engine, project_id, wanted) if wanted.scope_ids else None
    if few is None:
        return where, False
    # A generic plan does not know that they are few: it would walk the project's feed.
    return and_(where, among(events.c.lane_id, few)), True


def countable(
    project_id: ProjectId, wanted: EventFilter, where: ColumnElement[bool], *, few: bool
) -> Select[Any]:
    """The matching events for a count. `few`: the condition names the lanes of the filter."""
    matching = select(events.c.id)
    if not wanted.scope_ids:
        # The few lanes of temporary runs are left out by an index, without a join of all lanes.
        every = events_matching(project_id, wanted, private=True)
        return matching.where(every, shown_lane(events.c.lane_id))
    if few or wanted.statuses or wanted.code or wanted.graph_status:
        return matching.join(lanes).where(where)
    return by_lane(project_id, wanted)


def _lanes_of(project_id: ProjectId, wanted: EventFilter) -> Select[tuple[UUID]]:
    """Select the lanes with the filter's entity ids."""
    ids = [lanes.c[name] == value for name, value in wanted.scope_ids.items()]
    return select(lanes.c.id).where(
        lanes.c.project_id == project_id, shown(lanes, wanted.scope_ids), *ids
    )


def by_lane(project_id: ProjectId, wanted: EventFilter) -> Select[Any]:
    """Select the matching events of the newest lanes, lane after lane, in no order.

    LIMIT and OFFSET 0 keep the planner from reading all events of the project instead.
    """
    newest = _lanes_of(project_id, wanted).order_by(lanes.c.created_at.desc(), lanes.c.id)
    its = newest.limit(MOST_LANES).subquery("its")
    condition = events_matching(project_id, replace(wanted, scope_ids={}), private=True)
    none: ColumnElement[int] = literal_column("0")
    of_lane = select(events.c.id).where(events.c.lane_id == its.c.id, condition).offset(none)
    each = of_lane.lateral("each")
    return select(each.c.id).select_from(its.join(each, true()))
