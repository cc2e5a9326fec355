"""Queries for the progress of events, and for what is pending in their lanes."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    ScalarSelect,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    true,
)

from pipeline.domain.events import FINAL, Status
from pipeline.domain.lanes import GATHERING
from pipeline.ledger.filter_conditions import IN_PROJECT, lanes_with
from pipeline.ledger.tables import events, lanes, memories, relations

# Maximum number of unfinished events that are counted, and of lanes whose relations are looked up.
MOST_PENDING = MOST_LANES = 1_000
# Maximum number of memories that are few: their vectors cost less to read than the index to search.
FEW = 200


@cache
def progress_query() -> Select[Any]:
    """The query of `Events.progress`; `ids` is an array."""
    active = and_(events.c.status == Status.RUNNING, events.c.batch_id == lanes.c.batch_id)
    gathers = and_(events.c.status == Status.PENDING, lanes.c.wait_code == GATHERING)
    waits = and_(or_(active, gathers), lanes.c.state == "WAITING")
    return (
        select(
            events.c.id,
            events.c.status,
            case((active, lanes.c.stage)).label("stage"),
            case((waits, lanes.c.wait_code)).label("wait_code"),
            case((waits, lanes.c.due_at)).label("wait_until"),
            case((waits, lanes.c.wait_cause)).label("wait_cause"),
        )
        .join(lanes)
        .where(events.c.id == any_(bindparam("ids", type_=ARRAY(Uuid))))
    )


@cache
def lane_states_query(*pinned: str) -> Select[int, bool, bool, bool]:
    """The query of `Events.lane_states`.

    Its work is bounded for an owner of very many lanes: it counts up to MOST_PENDING events and FEW
    memories, and takes lanes beyond MOST_LANES for lanes with relations.
    """
    current = and_(
        memories.c.state == "ACTIVE",
        memories.c.project_id == IN_PROJECT,
        *(memories.c[name] == bindparam(name, type_=Text) for name in pinned),
    )
    stale = exists().where(
        memories.c.owed, memories.c.embedder == bindparam("embedder", type_=Text), current
    )
    searched = and_(current, ~memories.c.temporary)
    counted = select(memories.c.id).where(searched).limit(FEW + 1).subquery("counted")
    number = select(func.count()).select_from(counted).scalar_subquery()
    return select(
        _pending(*pinned).label("pending"),
        _related(*pinned).label("related"),
        stale.correlate(None).label("stale"),
        (number <= FEW).label("few"),
    )


def _pending(*pinned: str) -> ScalarSelect[int]:
    """The number of unfinished events of these lanes."""
    busy = (
        select(lanes.c.id, lanes.c.settled_seq)
        # The condition of the indexes of lanes that are not idle.
        .where(lanes_with(pinned), lanes.c.due_at.is_not(None))
        .limit(MOST_PENDING)
        .subquery("busy")
    )
    unfinished = (
        select(events.c.id)
        # The numbers use the index by lane, instead of all events that have not ended.
        .where(events.c.lane_id == busy.c.id, events.c.seq > busy.c.settled_seq)
        .where(*(events.c.status != ended for ended in FINAL))
        .limit(MOST_PENDING)
        .lateral("unfinished")
    )
    some = select(unfinished.c.id).select_from(busy.join(unfinished, true())).limit(MOST_PENDING)
    return select(func.count()).select_from(some.subquery("some")).scalar_subquery()


def _related(*pinned: str) -> ColumnElement[bool]:
    """True if the newest MOST_LANES of these lanes have current relations, or if there are more."""
    newest = (
        select(lanes.c.id)
        .where(lanes_with(pinned))
        .order_by(lanes.c.accepted_at.desc(), lanes.c.id)
        .limit(MOST_LANES + 1)
        .cte("newest")
    )
    current = (
        select(relations.c.id)
        .where(relations.c.lane_id == newest.c.id, relations.c.expired_at.is_(None))
        .limit(1)
        .lateral("current")
    )
    some = select(current.c.id).select_from(newest.join(current, true())).exists()
    number = select(func.count()).select_from(newest).scalar_subquery()
    return or_(some, number > MOST_LANES)
