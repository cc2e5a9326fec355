"""Events of an owner: a user, an agent, an app or a run, which may have very many lanes.

    newest lanes ──► their newest events ──► newer than all events of the other lanes? ──► a page
         ▲                                                 │ too few
         └──────────────── more lanes ◄────────────────────┘

No event of a lane is newer than the lane's `accepted_at`. So the events that are newer than that
time of the first lane left out are the newest ones of the owner, and the work follows the page, not
the owner's lanes. Rare events (of a status, a code, a kind) are read by the indexes of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    and_,
    cast,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import EventType, Status
from pipeline.domain.filters import EventFilter
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.filter_conditions import (
    among,
    event_conditions,
    events_matching,
    shown,
    shown_lane,
)
from pipeline.ledger.tables import events, lanes

# Number of lanes up to which the rare events of an owner are read lane by lane.
FEW_LANES = 1_000
# Maximum number of lanes, the newest ones, whose events are counted or read for a page.
MOST_LANES = 2 * COUNTED
# Lanes that are read besides one for each event up to the end of the page: adds that were accepted
# together have the same time. If they are too few, WIDER times as many are read.
SPARE_LANES, WIDER = 100, 8


async def page_of_owner(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
) -> Sequence[UUID] | None:
    """Ids of a page of events of an owner, newest first.

    None: read them by `matching_events`, for the filter names no owner or rare events, or because
    more than MOST_LANES would be read.
    """
    if not wanted.scope_ids or _are_rare(wanted):
        return None
    last, number = offset + limit, offset + limit + SPARE_LANES
    most = max(MOST_LANES, number)
    async with engine.connect() as connection:
        while number <= most:
            query = _newest_events(project_id, wanted, of_lanes=number, last=last)
            rows = (await connection.execute(query)).all()
            ids = [row.id for row in rows if row.id is not None]
            if len(ids) == last or rows[0].lanes <= number:
                return ids[offset:]
            number = most if number < most < number * WIDER else number * WIDER
    return None


async def matching_events(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter
) -> tuple[ColumnElement[bool], bool]:
    """The condition of the events. True with it: it names the few lanes of the filter."""
    where = events_matching(project_id, wanted)
    few = await _few_lanes(engine, project_id, wanted) if wanted.scope_ids else None
    if few is None:
        return where, False
    # A generic plan does not know that they are few: it would walk the project's feed.
    return and_(where, among(events.c.lane_id, few)), True


async def countable(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter
) -> Select[tuple[UUID]]:
    """The matching events for a count."""
    matching = select(events.c.id)
    if not wanted.scope_ids:
        # The few lanes of temporary runs are left out by an index, without a join of all lanes.
        every = events_matching(project_id, wanted, private=True)
        return matching.where(every, shown_lane(events.c.lane_id))
    if _are_rare(wanted):
        where, _ = await matching_events(engine, project_id, wanted)
        return matching.join(lanes).where(where)
    newest = _newest_lanes(project_id, wanted, MOST_LANES).subquery("newest")
    each = _of_lane(newest, event_conditions(wanted))
    return select(each.c.id).select_from(newest.join(each, true()))


def _are_rare(wanted: EventFilter) -> bool:
    """Tell if an index of the project has the events of the filter, few among many.

    Adds, and events that succeeded, are the most of all.
    """
    kinds, statuses = wanted.kinds, wanted.statuses
    common = (not kinds or EventType.ADD in kinds) and (
        not statuses or Status.SUCCEEDED in statuses
    )
    return not common or bool(wanted.code or wanted.graph_status)


async def _few_lanes(
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


def _newest_lanes(project_id: ProjectId, wanted: EventFilter, number: int) -> Select[Any]:
    """The lanes of the filter that were used last, with the time of that use."""
    order = (lanes.c.accepted_at.desc(), lanes.c.id)
    own = _lanes_of(project_id, wanted).add_columns(lanes.c.accepted_at)
    return own.order_by(*order).limit(number)


def _of_lane(
    newest: FromClause, *conditions: ColumnElement[bool], last: int | None = None
) -> FromClause:
    """The events of each of these lanes under the conditions, the `last` ones by age.

    LIMIT or OFFSET keeps the planner from reading all events of the project instead.
    """
    own = select(events.c.id, events.c.created_at).where(events.c.lane_id == newest.c.id)
    own = own.where(*conditions)
    if last is None:
        return own.offset(literal_column("0")).lateral("each")
    return own.order_by(events.c.created_at.desc(), events.c.id).limit(last).lateral("each")


def _newest_events(
    project_id: ProjectId, wanted: EventFilter, *, of_lanes: int, last: int
) -> Select[Any]:
    """Select the `last` newest events that can be compared by the newest lanes alone.

    Each row has `lanes`, the number of lanes that were read, one more than `of_lanes` if there are
    others. At least one row: without events, its `id` is NULL.
    """
    newest = _newest_lanes(project_id, wanted, of_lanes + 1).cte("newest")
    order = (newest.c.accepted_at.desc(), newest.c.id)
    next_lane = select(newest.c.accepted_at).order_by(*order).offset(of_lanes).limit(1)
    first = cast(literal_column("'-infinity'"), DateTime(timezone=True))
    after = func.coalesce(next_lane.scalar_subquery(), first)
    each = _of_lane(newest, events.c.created_at > after, event_conditions(wanted), last=last)
    rows = (
        select(each.c.id, each.c.created_at)
        .select_from(newest.join(each, true()))
        .order_by(each.c.created_at.desc(), each.c.id)
        .limit(last)
        .subquery("rows")
    )
    size = select(func.count().label("lanes")).select_from(newest).subquery("size")
    query = select(size.c.lanes, rows.c.id).select_from(size.outerjoin(rows, true()))
    return query.order_by(rows.c.created_at.desc(), rows.c.id)
