"""Newest turns: those that are compared with the words of a query in a large scope.

    few turns    all of them, together with the memories of the scope, if these are few, too
    very many    the newest MOST_TURNS, of the lanes used last; memories apart, by lookups

No inverted index has the words of messages: it would cost each add as much as its text. Meanings
find the earlier turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import FromClause, Select, Text, and_, bindparam, func, literal_column, select, true

from pipeline.ledger.filter_conditions import IN_PROJECT
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import books, events, lanes, messages
from pipeline.search.candidate_columns import turn_columns
from pipeline.search.where import Shape, Where
from pipeline.turns.store import turn_passages, uuids

# Messages that are compared with the words of a query, and lanes whose messages are.
MOST_TURNS, MOST_LANES = 5_000, 1_000


@dataclass(frozen=True, slots=True)
class LargeScope:
    """A scope with more than MOST_TURNS messages. `lane_ids`: its newest lanes; None: all."""

    lane_ids: Sequence[UUID] | None


async def large_scope(direct: Direct, where: Where) -> LargeScope | None:
    """The scope of a query, if it has very many turns; None if they are few.

    Without entity ids that all matches have, it is the project. A lane has assigned at least as
    many numbers as it has events: an estimate that costs no read of the messages.
    """
    values: Mapping[str, Any] = {"in_project": where.project_id, **where.pins}
    if not where.pins:
        [(numbers,)] = await direct.rows(_numbers_of_project(), values)
        return LargeScope(None) if numbers > MOST_TURNS else None
    rows = await direct.rows(_newest_lanes(*sorted(where.pins)), values)
    if len(rows) <= MOST_LANES and sum(row.accepted_seq for row in rows) <= MOST_TURNS:
        return None
    return LargeScope([row.id for row in rows[:MOST_LANES]])


def newest_turns(shape: Shape, *, of_lanes: bool) -> Select[Any]:
    """Select the matching ones of the newest messages, as passages with their terms.

    `of_lanes`: of the lanes `lanes`; else of the project. The messages are chosen first, by an
    index alone, and each is looked up: no plan can read the whole scope.
    """
    newest = _of_lanes() if of_lanes else _of_project()
    turn = turn_passages
    here = and_(
        turn.c.lane_id == newest.c.lane_id,
        turn.c.seq == newest.c.seq,
        turn.c.ordinal == newest.c.ordinal,
    )
    row = select(*turn_columns(), turn.c.terms).where(here, shape.on_turns()).correlate(newest)
    its = row.limit(literal_column("1")).lateral("its")
    return select(its).select_from(newest.join(its, true()))


def _of_lanes() -> FromClause:
    """The newest messages of each lane in turn, MOST_TURNS in all."""
    lane = func.unnest(uuids("lanes")).table_valued("id").render_derived()
    order = (messages.c.said_at.desc(), messages.c.seq.desc(), messages.c.ordinal.desc())
    own = (
        select(messages.c.lane_id, messages.c.seq, messages.c.ordinal)
        .where(messages.c.lane_id == lane.c.id)
        .order_by(*order)
        .limit(_most())
        .lateral("own")
    )
    return select(own).select_from(lane.join(own, true())).limit(_most()).subquery("newest")


def _of_project() -> FromClause:
    """The messages of the newest events of the project, MOST_TURNS in all."""
    event = (
        select(events.c.lane_id, events.c.seq)
        .where(events.c.project_id == IN_PROJECT)
        .order_by(events.c.created_at.desc())
        .limit(_most())
        .subquery("event")
    )
    own = (
        select(messages.c.lane_id, messages.c.seq, messages.c.ordinal)
        .where(messages.c.lane_id == event.c.lane_id, messages.c.seq == event.c.seq)
        .limit(_most())
        .lateral("own")
    )
    return select(own).select_from(event.join(own, true())).limit(_most()).subquery("newest")


def _most() -> Any:
    return literal_column(str(MOST_TURNS))


@cache
def _newest_lanes(*pins: str) -> Select[Any]:
    """The lanes with these ids that were used last, one more than MOST_LANES."""
    ids = (lanes.c[name] == bindparam(name, type_=Text) for name in pins)
    rows = select(lanes.c.id, lanes.c.accepted_seq).where(lanes.c.project_id == IN_PROJECT, *ids)
    order = (lanes.c.accepted_at.desc(), lanes.c.id)
    return rows.order_by(*order).limit(literal_column(str(MOST_LANES + 1)))


@cache
def _numbers_of_project() -> Select[Any]:
    """The numbers that all lanes of the project have assigned, by the books."""
    amount = func.coalesce(func.sum(books.c.amount), 0)
    return select(amount).where(
        books.c.project_id == IN_PROJECT,
        books.c.kind == literal_column("'NUMBER'"),
        books.c.owner == literal_column("''"),
    )
