"""Queries for the progress of events, and for what is pending in their lanes."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
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
)

from pipeline.domain.events import FINAL, Status
from pipeline.domain.lanes import GATHERING
from pipeline.ledger.filter_conditions import IN_PROJECT, lanes_with
from pipeline.ledger.tables import events, lanes, memories, relations


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
def standing_query(*pinned: str) -> Select[int, bool, bool]:
    """The query of `Events.standing`."""
    related = (
        exists()
        .select_from(relations.join(lanes, lanes.c.id == relations.c.lane_id))
        .where(lanes_with(pinned), relations.c.expired_at.is_(None))
        .correlate(None)
    )
    stale = exists().where(
        memories.c.owed,
        memories.c.state == "ACTIVE",
        memories.c.embedder == bindparam("embedder", type_=Text),
        memories.c.project_id == IN_PROJECT,
        *(memories.c[name] == bindparam(name, type_=Text) for name in pinned),
    )
    return (
        select(
            func.count().label("pending"),
            related.label("related"),
            stale.correlate(None).label("stale"),
        )
        .select_from(lanes.join(events))
        .where(
            lanes_with(pinned),
            lanes.c.state != "IDLE",
            # Uses the index by lane, instead of all events that have not ended.
            events.c.seq > lanes.c.settled_seq,
            *(events.c.status != ended for ended in FINAL),
        )
    )
