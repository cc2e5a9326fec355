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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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

from pipeline.domain.events import EventType, Status
from pipeline.domain.filters import EventFilter
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.filter_conditions import (
    IN_PROJECT,
    OPEN,
    EventShape,
    created_within,
    event_conditions,
    event_shape,
    has_code,
    one_of,
    shown,
)
from pipeline.ledger.owned_rows import (
    FEW_LANES,
    MOST,
    MOST_LANES,
    OF_LANES,
    PAGE_END,
    ZERO,
    LaneRows,
    first,
    newest_keys,
    rows_of_each,
)
from pipeline.ledger.statements import SHAPES, Direct
from pipeline.ledger.tables import events, lanes

# Lanes that are read besides one for each event up to the end of the page: adds that were accepted
# together have the same time. If they are too few, WIDER times as many are read.
SPARE_LANES, WIDER = 100, 8
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
# Events as rows of an owner's list, for their key and order.
EVENTS = LaneRows(events)
# A statement for a shape, and its values besides those of the filter.
Step = tuple[Callable[[EventShape], Select[Any]], Mapping[str, int]]


async def page_of_owner(
    direct: Direct, project_id: ProjectId, wanted: EventFilter, *, limit: int, offset: int
) -> tuple[Sequence[UUID], bool]:
    """The ids of a page of events of an owner, newest first, and if none of them is missing."""
    last = offset + limit
    shaped, values = event_shape(wanted)
    values["in_project"] = project_id
    steps = _pages(shaped, last)
    keys, whole = await newest_keys(direct, steps, shaped, values, key=EVENTS.key, last=last)
    return [key[0] for key in keys[offset:]], whole


async def count_of_owner(
    direct: Direct, project_id: ProjectId, wanted: EventFilter, *, most: int
) -> tuple[int, bool]:
    """Count the matching events of an owner among at most `most` of its newest ones.

    Returns the number, and if it is exact: else there are at least as many.
    """
    highest = 0
    shaped, values = event_shape(wanted)
    for build, own_values in _counts(shaped, most):
        query = await SHAPES.of(build, shaped)
        [row] = await direct.rows(query, {"in_project": project_id, **values, **own_values})
        if row.exact or row.number >= most:
            return row.number, row.exact
        highest = max(highest, row.number)
    return highest, False


def _pages(wanted: EventShape, last: int) -> Iterator[Step]:
    """Statements for the `last` newest events: each reads more than the last one, or elsewhere."""
    rare = _are_rare(wanted)
    number = max(last + SPARE_LANES, FEW_LANES if rare else 0)
    most = max(MOST_LANES, number)
    if _is_open(wanted):
        yield _newest_of_busy, {"of_lanes": FEW_LANES}
    yield _newest_by_lanes, {"of_lanes": number}
    if rare:
        yield _newest_of_project, {"most": last + COUNTED}
    while number < most:
        number = most if rare else min(most, number * WIDER)
        yield _newest_by_lanes, {"of_lanes": number}
    yield _newest_of_project, {"most": max(MOST_EVENTS, last + COUNTED)}


def _counts(wanted: EventShape, most: int) -> Iterator[Step]:
    """Statements for the number of events, in the order of their cost."""
    if _are_rare(wanted):
        yield _count_by_lanes, {"of_lanes": FEW_LANES, "most": most}
        yield _count_of_project, {"most": most}
    yield _count_by_lanes, {"of_lanes": MOST_LANES, "most": most}
    if _are_rare(wanted):
        yield _count_of_project, {"most": max(MOST_EVENTS, most)}


def _are_rare(wanted: EventShape) -> bool:
    """Tell if the events of the filter are few among many.

    Adds, and events that succeeded, are the most of all.
    """
    kinds, statuses = wanted.kinds, wanted.statuses
    common = (not kinds or EventType.ADD in kinds) and (
        not statuses or Status.SUCCEEDED in statuses
    )
    return not common or wanted.by_code or bool(wanted.graph_status)


def _parts(wanted: EventShape) -> list[EventShape]:
    """The filter as one or two, each of which an index of a lane's events has."""
    if not wanted.statuses or Status.SUCCEEDED in wanted.statuses:
        return [wanted]
    ended = [status for status in wanted.statuses if status not in OPEN]
    still = [status for status in wanted.statuses if status in OPEN]
    return [replace(wanted, statuses=tuple(part)) for part in (ended, still) if part]


def _is_open(part: EventShape) -> bool:
    """Tell if the filter has only events that have not ended."""
    return bool(part.statuses) and OPEN.issuperset(part.statuses)


def _lanes_of(wanted: EventShape, *, busy: bool = False) -> Select[Any]:
    """Select the lanes with the filter's entity ids; `busy`: those that are not idle."""
    # The condition of the indexes of these lanes.
    state = lanes.c.due_at.is_not(None) if busy else true()
    return select(lanes.c.id, lanes.c.settled_seq, lanes.c.accepted_at).where(
        lanes.c.project_id == IN_PROJECT, shown(lanes, wanted.scope_ids), state, wanted.owned
    )


def _of_lane(newest: FromClause, part: EventShape) -> tuple[FromClause, Select[Any]]:
    """The events of each of these lanes that match, and the table that has their columns."""
    here = select(*(events.c[name] for name in FILTERED)).where(events.c.lane_id == newest.c.id)
    if not _is_open(part):
        return events, here.where(event_conditions(part, events)).correlate(newest)
    # OFFSET keeps the planner from the index of all open events of the project.
    after_settled = here.where(events.c.seq > newest.c.settled_seq).correlate(newest)
    still = after_settled.offset(ZERO).subquery("still")
    return still, select(still).where(event_conditions(part, still))


def _newest_by_lanes(wanted: EventShape) -> Select[Any]:
    """Select the newest events, up to the end of the page, that the newest lanes alone decide.

    `whole` in each row: there are no other lanes. At least one row: without events, its `id` is
    NULL.
    """
    used_last = _lanes_of(wanted).order_by(lanes.c.accepted_at.desc(), lanes.c.id)
    newest = used_last.limit(OF_LANES + 1).cte("newest")
    order = (newest.c.accepted_at.desc(), newest.c.id)
    next_lane = select(newest.c.accepted_at).order_by(*order).offset(OF_LANES).limit(1)
    after = func.coalesce(next_lane.correlate(None).scalar_subquery(), FIRST)
    return _newest_of(newest, wanted, after)


def _newest_of_busy(wanted: EventShape) -> Select[Any]:
    """Select the newest events of the lanes that are not idle; none if these are many."""
    newest = _lanes_of(wanted, busy=True).limit(OF_LANES + 1).cte("newest")
    number = select(func.count()).select_from(newest).correlate(None).scalar_subquery()
    after = case((number > OF_LANES, LAST), else_=FIRST)
    return _newest_of(newest, wanted, after)


def _newest_of(newest: FromClause, wanted: EventShape, after: ColumnElement[Any]) -> Select[Any]:
    """Select the newest events of these lanes after a time, up to the end of the page."""
    own = []
    for table, rows in (_of_lane(newest, part) for part in _parts(wanted)):
        its_order = (table.c.created_at.desc(), table.c.id)
        own.append(rows.where(table.c.created_at > after).order_by(*its_order).limit(PAGE_END))
    each = rows_of_each(own)
    whole = select((func.count() <= OF_LANES).label("whole")).select_from(newest)
    newest_events: Select[Any] = select(each.c.id, each.c.created_at)
    return first(EVENTS, newest_events.select_from(newest.join(each, true())), whole)


def _newest_of_project(wanted: EventShape) -> Select[Any]:
    """Select the newest events among those of `_of_project`, up to the end of the page."""
    own, whole = _of_project(wanted)
    return first(EVENTS, own, select(whole.label("whole")))


def _of_project(wanted: EventShape) -> tuple[Select[Any], ColumnElement[bool]]:
    """The owner's events among up to `most` of the project for each part of the filter.

    With the condition that the project has no more. Of two parts, or of open events, those newer
    than any that was not read.
    """
    parts = _parts(wanted)
    reads = [_newest_indexed(part).cte(f"read_{number}") for number, part in enumerate(parts)]
    sizes = [select(func.count()).select_from(read).scalar_subquery() for read in reads]
    ends = [
        select(read.c.place).order_by(read.c.place.desc()).offset(MOST).limit(1).scalar_subquery()
        for read in reads
    ]
    # Of two parts the ends differ, and the open ones are in the order of their replays.
    after = func.coalesce(func.greatest(*ends), FIRST)
    own = [_owned(read, part, wanted) for read, part in zip(reads, parts, strict=True)]
    if len(parts) > 1 or _is_open(wanted):
        own = [rows.where(read.c.created_at > after) for rows, read in zip(own, reads, strict=True)]
    whole = and_(*(size <= MOST for size in sizes))
    if len(own) == 1:
        return own[0], whole
    both = union_all(*own).subquery("both")
    return select(both), whole


def _newest_indexed(part: EventShape) -> Select[Any]:
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
    its = (events.c.project_id == IN_PROJECT, _indexed(part), created_within(part, events))
    rows = select(*columns, events.c.lane_id, place.label("place"))
    return rows.where(*its).order_by(*order).limit(MOST + 1)


def _owned(read: FromClause, part: EventShape, wanted: EventShape) -> Select[Any]:
    """The events of these that are the owner's and match."""
    lane = select(lanes.c.id.label("owned")).where(
        lanes.c.id == read.c.lane_id, shown(lanes, wanted.scope_ids), wanted.owned
    )
    its = lane.correlate(read).limit(literal_column("1")).lateral("its")
    columns = (read.c.id, read.c.created_at)
    return select(*columns).select_from(read.join(its, true())).where(event_conditions(part, read))


def _indexed(wanted: EventShape) -> ColumnElement[bool]:
    """The condition of the index of a project's events that is the nearest to the filter."""
    statuses, kinds = wanted.statuses, wanted.kinds
    if _is_open(wanted):
        return events.c.completed_at.is_(None)
    if wanted.by_code:
        return has_code()
    if wanted.graph_status:
        return one_of(events.c.graph_status, [wanted.graph_status])
    if statuses and set(statuses) <= set(UNSUCCESSFUL):
        return one_of(events.c.status, UNSUCCESSFUL)
    if kinds and EventType.ADD not in kinds:
        return events.c.event_type != literal_column(f"'{EventType.ADD}'")
    return true()


def _count_by_lanes(wanted: EventShape) -> Select[Any]:
    """Count up to `most` events of `of_lanes` lanes; `exact`: there are no others."""
    # No order is needed: what bounds the count is the number.
    own_lanes = _lanes_of(wanted, busy=_is_open(wanted))
    newest = own_lanes.limit(OF_LANES).subquery("newest")
    # OFFSET keeps the planner from reading all events of the project instead.
    parts = _parts(wanted)
    own = [_of_lane(newest, part)[1].offset(ZERO) for part in parts]
    each = rows_of_each(own)
    some = select(each.c.id).select_from(newest.join(each, true())).limit(MOST).subquery("some")
    others = own_lanes.offset(OF_LANES).limit(1)
    exact = case((func.count() < MOST, ~exists(others)), else_=false())
    return select(func.count().label("number"), exact.label("exact")).select_from(some)


def _count_of_project(wanted: EventShape) -> Select[Any]:
    """Count the owner's events among those of `_of_project`; `exact`: the project has no more."""
    own, whole = _of_project(wanted)
    number = select(func.count()).select_from(own.subquery("own")).scalar_subquery()
    return select(number.label("number"), whole.label("exact"))
