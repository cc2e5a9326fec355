"""Events of an owner: a user, an agent, an app or a run, which may have very many lanes.

    newest lanes ──► their newest events ──► newer than all events of the other lanes? ──► a page
         ▲                                                 │ too few
         └──────────────── more lanes ◄────────────────────┘

No event of a lane is newer than the lane's `accepted_at`. So the events that are newer than that
time of the first lane left out are the newest ones of the owner, and the work follows the page, not
the owner's lanes.

Rare events (of a status, a code, a kind) may be in lanes that were used long ago. They are also
looked for among the newest such events of the project: one of the two is short, or the answer says
that it is bounded. In a lane they are found by an index of the rare ones, open ones by their
numbers. Only an owner with more than MOST_LANES can lack events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import EventType, Status
from pipeline.domain.filters import EventFilter
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.filter_conditions import (
    OPEN,
    created_within,
    event_conditions,
    one_of,
    shown,
)
from pipeline.ledger.tables import events, lanes

# Maximum number of lanes, the newest ones, whose events are counted or read for a page.
MOST_LANES = 2 * COUNTED
# Lanes that are read besides one for each event up to the end of the page: adds that were accepted
# together have the same time. If they are too few, WIDER times as many are read.
SPARE_LANES, WIDER = 100, 8
# Lanes in which rare events are looked for before those of the project are read.
FEW_LANES = 1_000
# Newest events of the project, at least, among which those of an owner with more than MOST_LANES
# are looked for.
MOST_EVENTS = 10 * COUNTED
# Statuses of the index of events that ended without success, and the columns of filters.
UNSUCCESSFUL = (Status.FAILED, Status.CANCELLED)
FILTERED = (
    *("id", "created_at", "event_type", "status", "completed_at", "failure_code", "graph_status"),
    "undone_at",
)
# The bounds of all times.
FIRST, LAST = (
    cast(literal_column(f"'{bound}'"), DateTime(timezone=True))
    for bound in ("-infinity", "infinity")
)


@dataclass(frozen=True, slots=True)
class OwnerPage:
    """Ids of a page of events, newest first. `whole`: no event of the page is missing."""

    ids: Sequence[UUID]
    whole: bool


@dataclass(frozen=True, slots=True)
class OwnerCount:
    """A number of events; if it is not `exact`, there are at least as many."""

    number: int
    exact: bool


async def page_of_owner(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
) -> OwnerPage:
    """A page of events of an owner.

    Each query returns the first events in their order, so the longest of the answers is right as
    far as it goes.
    """
    last = offset + limit
    longest: list[UUID] = []
    async with engine.connect() as connection:
        for query in _pages(project_id, wanted, last):
            rows = (await connection.execute(query)).all()
            ids = [row.id for row in rows if row.id is not None]
            if len(ids) == last or rows[0].whole:
                return OwnerPage(ids[offset:], whole=True)
            longest = max(longest, ids, key=len)
    return OwnerPage(longest[offset:], whole=False)


async def count_of_owner(
    engine: AsyncEngine, project_id: ProjectId, wanted: EventFilter, *, most: int
) -> OwnerCount:
    """Count the matching events of an owner among at most `most` of its newest ones."""
    highest = 0
    async with engine.connect() as connection:
        for query in _counts(project_id, wanted, most):
            row = (await connection.execute(query)).one()
            if row.exact or row.number >= most:
                return OwnerCount(row.number, exact=row.exact)
            highest = max(highest, row.number)
    return OwnerCount(highest, exact=False)


def _pages(project_id: ProjectId, wanted: EventFilter, last: int) -> Iterator[Select[Any]]:
    """Queries for the `last` newest events: each reads more than the one before, or elsewhere."""
    rare = _are_rare(wanted)
    number = max(last + SPARE_LANES, FEW_LANES if rare else 0)
    most = max(MOST_LANES, number)
    if _is_open(wanted):
        yield _newest_of_busy(project_id, wanted, last=last)
    yield _newest_by_lanes(project_id, wanted, of_lanes=number, last=last)
    if rare:
        yield _newest_of_project(project_id, wanted, last=last, most=last + COUNTED)
    while number < most:
        number = most if rare else min(most, number * WIDER)
        yield _newest_by_lanes(project_id, wanted, of_lanes=number, last=last)
    most = max(MOST_EVENTS, last + COUNTED)
    yield _newest_of_project(project_id, wanted, last=last, most=most)


def _counts(project_id: ProjectId, wanted: EventFilter, most: int) -> Iterator[Select[Any]]:
    """Queries for the number of events, in the order of their cost."""
    if _are_rare(wanted):
        yield _count_by_lanes(project_id, wanted, of_lanes=FEW_LANES, most=most)
        yield _count_of_project(project_id, wanted, most=most)
    yield _count_by_lanes(project_id, wanted, of_lanes=MOST_LANES, most=most)
    if _are_rare(wanted):
        yield _count_of_project(project_id, wanted, most=max(MOST_EVENTS, most))


def _are_rare(wanted: EventFilter) -> bool:
    """Tell if the events of the filter are few among many.

    Adds, and events that succeeded, are the most of all.
    """
    kinds, statuses = wanted.kinds, wanted.statuses
    common = (not kinds or EventType.ADD in kinds) and (
        not statuses or Status.SUCCEEDED in statuses
    )
    return not common or bool(wanted.code or wanted.graph_status)


def _parts(wanted: EventFilter) -> list[EventFilter]:
    """The filter as one or two, each of which an index of a lane's events has."""
    if not wanted.statuses or Status.SUCCEEDED in wanted.statuses:
        return [wanted]
    ended = [status for status in wanted.statuses if status not in OPEN]
    still = [status for status in wanted.statuses if status in OPEN]
    return [replace(wanted, statuses=part) for part in (ended, still) if part]


def _is_open(part: EventFilter) -> bool:
    """Tell if the filter has only events that have not ended."""
    return bool(part.statuses) and OPEN.issuperset(part.statuses)


def _lanes_of(project_id: ProjectId, wanted: EventFilter, *, busy: bool = False) -> Select[Any]:
    """Select the lanes with the filter's entity ids; `busy`: those that are not idle."""
    ids = [lanes.c[name] == value for name, value in wanted.scope_ids.items()]
    # The condition of the indexes of these lanes.
    state = lanes.c.due_at.is_not(None) if busy else true()
    return select(lanes.c.id, lanes.c.settled_seq, lanes.c.accepted_at).where(
        lanes.c.project_id == project_id, shown(lanes, wanted.scope_ids), state, *ids
    )


def _newest_lanes(project_id: ProjectId, wanted: EventFilter, number: int) -> Select[Any]:
    """The lanes of the filter that were used last, with the time of that use."""
    order = (lanes.c.accepted_at.desc(), lanes.c.id)
    return _lanes_of(project_id, wanted).order_by(*order).limit(number)


def _of_lane(newest: FromClause, part: EventFilter) -> tuple[FromClause, Select[Any]]:
    """The events of each of these lanes that match, and the table that has their columns."""
    here = select(*(events.c[name] for name in FILTERED)).where(events.c.lane_id == newest.c.id)
    if not _is_open(part):
        return events, here.where(event_conditions(part, events)).correlate(newest)
    # OFFSET keeps the planner from the index of all open events of the project.
    after_settled = here.where(events.c.seq > newest.c.settled_seq).correlate(newest)
    still = after_settled.offset(literal_column("0")).subquery("still")
    return still, select(still).where(event_conditions(part, still))


def _each(selects: Sequence[Select[Any]]) -> FromClause:
    """The rows of these queries for each lane."""
    if len(selects) == 1:
        return selects[0].lateral("each")
    return union_all(*(select(part.subquery()) for part in selects)).lateral("each")


def _newest_by_lanes(
    project_id: ProjectId, wanted: EventFilter, *, of_lanes: int, last: int
) -> Select[Any]:
    """Select the `last` newest events that can be compared by the newest lanes alone.

    `whole` in each row: there are no other lanes. At least one row: without events, its `id` is
    NULL.
    """
    newest = _newest_lanes(project_id, wanted, of_lanes + 1).cte("newest")
    order = (newest.c.accepted_at.desc(), newest.c.id)
    next_lane = select(newest.c.accepted_at).order_by(*order).offset(of_lanes).limit(1)
    after = func.coalesce(next_lane.correlate(None).scalar_subquery(), FIRST)
    return _newest_of(newest, wanted, after, of_lanes=of_lanes, last=last)


def _newest_of_busy(project_id: ProjectId, wanted: EventFilter, *, last: int) -> Select[Any]:
    """Select the `last` newest events of the lanes that are not idle; none if they are many."""
    newest = _lanes_of(project_id, wanted, busy=True).limit(FEW_LANES + 1).cte("newest")
    number = select(func.count()).select_from(newest).correlate(None).scalar_subquery()
    after = case((number > FEW_LANES, LAST), else_=FIRST)
    return _newest_of(newest, wanted, after, of_lanes=FEW_LANES, last=last)


def _newest_of(
    newest: FromClause,
    wanted: EventFilter,
    after: ColumnElement[Any],
    *,
    of_lanes: int,
    last: int,
) -> Select[Any]:
    """Select the `last` newest events of these lanes after a time."""
    own = []
    for table, rows in (_of_lane(newest, part) for part in _parts(wanted)):
        its_order = (table.c.created_at.desc(), table.c.id)
        own.append(rows.where(table.c.created_at > after).order_by(*its_order).limit(last))
    each = _each(own)
    whole = select((func.count() <= of_lanes).label("whole")).select_from(newest)
    return _first(select(each).select_from(newest.join(each, true())), whole, last=last)


def _newest_of_project(
    project_id: ProjectId, wanted: EventFilter, *, last: int, most: int
) -> Select[Any]:
    """Select the `last` newest events among the `most` of the project; see `_of_project`."""
    own, whole = _of_project(project_id, wanted, most=most)
    return _first(own, select(whole.label("whole")), last=last)


def _first(rows: Select[Any], whole: Select[Any], *, last: int) -> Select[Any]:
    """Select the `last` newest of these events, each with `whole`."""
    matching = rows.subquery("matching")
    order = (matching.c.created_at.desc(), matching.c.id)
    first = (
        select(matching.c.id, matching.c.created_at).order_by(*order).limit(last).subquery("first")
    )
    size = whole.subquery("size")
    query = select(size.c.whole, first.c.id).select_from(size.outerjoin(first, true()))
    return query.order_by(first.c.created_at.desc(), first.c.id)


def _of_project(
    project_id: ProjectId, wanted: EventFilter, *, most: int
) -> tuple[Select[Any], ColumnElement[bool]]:
    """The owner's events among up to `most` of the project for each part of the filter.

    With the condition that the project has no more. Of two parts, or of open events, those newer
    than any that was not read.
    """
    parts = _parts(wanted)
    reads = [
        _newest_indexed(project_id, part, most).cte(f"read_{number}")
        for number, part in enumerate(parts)
    ]
    sizes = [select(func.count()).select_from(read).scalar_subquery() for read in reads]
    ends = [
        select(read.c.place).order_by(read.c.place.desc()).offset(most).limit(1).scalar_subquery()
        for read in reads
    ]
    # Of two parts the ends differ, and the open ones are in the order of their replays.
    after = func.coalesce(func.greatest(*ends), FIRST)
    own = [_owned(read, part, wanted) for read, part in zip(reads, parts, strict=True)]
    if len(parts) > 1 or _is_open(wanted):
        own = [rows.where(read.c.created_at > after) for rows, read in zip(own, reads, strict=True)]
    whole = and_(*(size <= most for size in sizes))
    if len(own) == 1:
        return own[0], whole
    both = union_all(*own).subquery("both")
    return select(both), whole


def _newest_indexed(project_id: ProjectId, part: EventFilter, most: int) -> Select[Any]:
    """The newest `most` events of the project, and one, that an index has.

    `place`: the time of their order, no earlier than `created_at`.
    """
    place: ColumnElement[Any] = events.c.created_at
    order: tuple[ColumnElement[Any], ...] = (place.desc(), events.c.id)
    if _is_open(part):
        # The order of their index.
        place = func.coalesce(events.c.replayed_at, events.c.created_at)
        order = (place.desc(),)
    columns = [events.c[name] for name in FILTERED]
    its = (events.c.project_id == project_id, _indexed(part), created_within(part, events))
    rows = select(*columns, events.c.lane_id, place.label("place"))
    return rows.where(*its).order_by(*order).limit(most + 1)


def _owned(read: FromClause, part: EventFilter, wanted: EventFilter) -> Select[Any]:
    """The events of these that are the owner's and match."""
    ids = [lanes.c[name] == value for name, value in wanted.scope_ids.items()]
    lane = select(lanes.c.id.label("owned")).where(
        lanes.c.id == read.c.lane_id, shown(lanes, wanted.scope_ids), *ids
    )
    its = lane.correlate(read).limit(literal_column("1")).lateral("its")
    columns = (read.c.id, read.c.created_at)
    return select(*columns).select_from(read.join(its, true())).where(event_conditions(part, read))


def _indexed(wanted: EventFilter) -> ColumnElement[bool]:
    """The condition of the index of a project's events that is the nearest to the filter."""
    statuses, kinds = wanted.statuses, wanted.kinds
    if _is_open(wanted):
        return events.c.completed_at.is_(None)
    if wanted.code:
        return events.c.failure_code == wanted.code
    if wanted.graph_status:
        return one_of(events.c.graph_status, [wanted.graph_status])
    if statuses and set(statuses) <= set(UNSUCCESSFUL):
        return one_of(events.c.status, UNSUCCESSFUL)
    if kinds and EventType.ADD not in kinds:
        return events.c.event_type != literal_column(f"'{EventType.ADD}'")
    return true()


def _count_by_lanes(
    project_id: ProjectId, wanted: EventFilter, *, of_lanes: int, most: int
) -> Select[Any]:
    """Count up to `most` events of some lanes; `exact`: there are no others."""
    # No order is needed: what bounds the count is the number.
    own_lanes = _lanes_of(project_id, wanted, busy=_is_open(wanted))
    newest = own_lanes.limit(of_lanes).subquery("newest")
    # OFFSET keeps the planner from reading all events of the project instead.
    parts = _parts(wanted)
    own = [_of_lane(newest, part)[1].offset(literal_column("0")) for part in parts]
    each = _each(own)
    some = select(each.c.id).select_from(newest.join(each, true())).limit(most).subquery("some")
    others = own_lanes.offset(of_lanes).limit(1)
    exact = case((func.count() < most, ~exists(others)), else_=false())
    return select(func.count().label("number"), exact.label("exact")).select_from(some)


def _count_of_project(project_id: ProjectId, wanted: EventFilter, *, most: int) -> Select[Any]:
    """Count the owner's events among those of `_of_project`; `exact`: the project has no more."""
    own, whole = _of_project(project_id, wanted, most=most)
    number = select(func.count()).select_from(own.subquery("own")).scalar_subquery()
    return select(number.label("number"), whole.label("exact"))
