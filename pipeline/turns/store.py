"""Turns: messages, read under the column names of memories.

Messages of cancelled or undone events are not turns. A turn is hidden once a person deletes a
memory that was extracted from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Date,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    cast,
    exists,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pipeline.domain.events import EventType
from pipeline.domain.facts import Outcome
from pipeline.domain.messages import Role
from pipeline.domain.passages import FACT, PassageKey, Turn
from pipeline.domain.scope import Scope
from pipeline.ledger.filter_conditions import IN_PROJECT, message_at
from pipeline.ledger.row_values import value_of
from pipeline.ledger.tables import events, lanes, memories, memory_history, messages


def not_withdrawn(event: FromClause = events, lane: FromClause = lanes) -> ColumnElement[bool]:
    """The condition of turns: messages of cancelled, undone or cleared events are not turns."""
    return and_(
        event.c.status != "CANCELLED",
        event.c.undone_at.is_(None),
        event.c.seq > lane.c.forgotten_seq,
    )


# Columns of memories that turns lack: a filter by one of them matches no turn.
UNSTRUCTURED = ("kind", "memory_type", "subject", "attribute", "slot")
_NOTHING = cast(literal_column("'{}'"), JSONB)


def _turns(
    joined: FromClause, lane: FromClause, event: FromClause, message: FromClause
) -> Select[Any]:
    """Select the turns of `joined`, with the column names of memories."""
    options = event.c.options
    return (
        select(
            event.c.project_id,
            event.c.lane_id,
            *(lane.c[name] for name in ("user_id", "agent_id", "app_id", "run_id")),
            lane.c.temporary,
            cast(null(), Uuid).label("id"),
            event.c.id.label("event_id"),
            message.c.seq,
            message.c.ordinal,
            message.c.role,
            message.c.role.label("attributed_to"),
            message.c.name,
            message.c.content.label("text"),
            message.c.terms,
            func.coalesce(options["metadata"], _NOTHING).label("metadata"),
            cast([], ARRAY(Text)).label("categories"),
            cast(options["expiration_date"].astext, Date).label("expiration_date"),
            or_(event.c.status == "PENDING", event.c.status == "RUNNING").label("pending"),
            message.c.said_at,
            message.c.said_at.label("valid_from"),
            message.c.name.label("speaker"),
            *(cast(null(), Text).label(name) for name in UNSTRUCTURED),
            event.c.created_at,
            event.c.created_at.label("updated_at"),
        )
        .select_from(joined)
        .where(
            lane.c.project_id == event.c.project_id,
            event.c.event_type == EventType.ADD,
            message.c.role != Role.SYSTEM,
            message.c.role != Role.TOOL,
            not_withdrawn(event, lane),
        )
    )


def _not_verbatim(event: FromClause) -> ColumnElement[bool]:
    """The condition on turns that a search can return.

    A verbatim message is not one of them: search returns the memory with the same text, and both
    are deleted together.
    """
    options = event.c.options
    return ~and_(event.c.status == "SUCCEEDED", options["infer"].astext == "false")


_tables = lanes.join(events, events.c.lane_id == lanes.c.id).join(
    messages, and_(messages.c.lane_id == lanes.c.id, messages.c.seq == events.c.seq)
)
_all = _turns(_tables, lanes, events, messages)
all_turns = _all.subquery("all_turns")
# Turns that a search can return.
turn_passages = _all.where(_not_verbatim(events)).subquery("turn_passages")


def listed_turns(name: str) -> FromClause:
    """Subquery of the `turn_passages` that the parameters of `listed(name, …)` name.

    Each row of a table is looked up by its key, one after the other: the limits leave the planner
    no other order. It would read all turns of a scope, or all events of the project, for each
    name, with a plan that is made before the tables are analyzed.
    """
    of = _listed(name)
    event = _looked_up(events, events.c.id == of.c.id, "event")
    lane = _looked_up(lanes, lanes.c.id == event.c.lane_id, "lane")
    message = _looked_up(messages, message_at(of.c.ordinal, event), "message")
    joined = of.join(event, true()).join(lane, true()).join(message, true())
    turns = _turns(joined, lane, event, message).where(_not_verbatim(event))
    return turns.subquery(f"listed_{name}")


def _looked_up(table: FromClause, its_key: ColumnElement[bool], name: str) -> FromClause:
    return select(table).where(its_key).limit(literal_column("1")).lateral(name)


def forgotten(turn: FromClause) -> ColumnElement[bool]:
    """True for a turn if a person deleted a memory that was extracted from it."""
    of = select(memory_history.c.memory_id).where(
        memory_history.c.event_id == turn.c.event_id,
        memory_history.c.message_ordinal == turn.c.ordinal,
    )
    # OFFSET 0 keeps the planner from reading all retired memories, of all projects, first.
    offset: ColumnElement[int] = literal_column("0")
    source = of.correlate(turn).offset(offset).subquery("source")
    last = memory_history.alias("last")
    # Deletions by a model, an undo or a replay do not count.
    add = exists().where(events.c.id == last.c.event_id, events.c.event_type == EventType.ADD)
    deleted = (
        select(literal(1))
        .select_from(source)
        .join(memories, memories.c.id == source.c.memory_id)
        .join(last, and_(last.c.memory_id == memories.c.id, last.c.version == memories.c.version))
        .where(
            memories.c.lane_id == turn.c.lane_id,
            memories.c.state == "RETIRED",
            memories.c.replaced_by.is_(None),
            last.c.event == Outcome.DELETE,
            last.c.undoes.is_(None),
            ~add,
        )
    )
    return deleted.offset(offset).correlate(turn).exists()


def among(turn: FromClause, name: str) -> ColumnElement[bool]:
    """Match the turns that the parameters of `listed(name, …)` name."""
    of = _listed(name)
    place = tuple_(turn.c.event_id, turn.c.ordinal)
    return place.in_(select(of.c.id, of.c.ordinal))


def listed(name: str, keys: Sequence[PassageKey]) -> dict[str, Any]:
    """Parameters of a statement for these turns, under this name."""
    turns = [key for key in keys if key.is_turn]
    return {
        f"{name}_ids": [key.id for key in turns],
        f"{name}_ordinals": [key.ordinal for key in turns],
    }


def just_before(turn: FromClause) -> FromClause:
    """Select the message before a turn, by time, in the same lane."""
    earlier = messages.alias()
    order = tuple_(earlier.c.said_at, earlier.c.seq, earlier.c.ordinal)
    return (
        select(earlier.c.seq, earlier.c.ordinal)
        .where(
            earlier.c.lane_id == turn.c.lane_id,
            order < tuple_(turn.c.said_at, turn.c.seq, turn.c.ordinal),
        )
        .order_by(earlier.c.said_at.desc(), earlier.c.seq.desc(), earlier.c.ordinal.desc())
        .limit(1)
        .lateral()
    )


@cache
def beside() -> Select[Any]:
    """Select turns before and after each of `facts`, and of the turns listed as `turns`.

    At most `count` on each side, by time, in the project `in_project`. (of_id, of_ordinal) is the
    key of the passage.
    """
    of = _sources()
    anchor = all_turns.alias("anchor")
    order = [all_turns.c.said_at, all_turns.c.seq, all_turns.c.ordinal]
    before = _nearby(anchor, before=True).order_by(*(column.desc() for column in order))
    after = _nearby(anchor, before=False).order_by(*order)
    count = bindparam("count", type_=Integer)
    around = union_all(
        select(before.limit(count).correlate(anchor).subquery()),
        select(after.limit(count).correlate(anchor).subquery()),
    ).lateral("around")
    source = and_(
        anchor.c.event_id == of.c.event_id,
        anchor.c.ordinal == of.c.at,
        anchor.c.project_id == IN_PROJECT,
    )
    return (
        select(of.c.id.label("of_id"), of.c.ordinal.label("of_ordinal"), *around.c)
        .select_from(of)
        .join(anchor, source)
        .join(around, true())
        .order_by(around.c.said_at, around.c.seq, around.c.ordinal)
    )


def _nearby(anchor: FromClause, *, before: bool) -> Select[Any]:
    """Select turns among the messages nearest to the anchor, before or after it.

    The messages are chosen first, by their index alone; otherwise the planner would read the whole
    lane for each anchor. Turns behind a long run of messages that are not turns (cancelled,
    deleted) are not found.
    """
    near = messages.alias()
    order = [near.c.said_at, near.c.seq, near.c.ordinal]
    here = tuple_(anchor.c.said_at, anchor.c.seq, anchor.c.ordinal)
    picked = (
        select(near.c.seq, near.c.ordinal)
        .where(
            near.c.lane_id == anchor.c.lane_id,
            tuple_(*order) < here if before else tuple_(*order) > here,
        )
        .order_by(*(column.desc() if before else column for column in order))
        .limit(bindparam("reach", type_=Integer))
        .correlate(anchor)
        .subquery()
    )
    place = and_(all_turns.c.seq == picked.c.seq, all_turns.c.ordinal == picked.c.ordinal)
    return (
        select(all_turns)
        .join(picked, place)
        .where(all_turns.c.lane_id == anchor.c.lane_id, ~forgotten(all_turns))
        .correlate(anchor)
    )


def _sources() -> FromClause:
    """Select the turn (event_id, at) of each key (id, ordinal)."""
    fact = select(
        memories.c.id,
        cast(literal(FACT), Integer).label("ordinal"),
        memories.c.event_id,
        cast(memories.c.message_ordinal, Integer).label("at"),
    ).where(memories.c.id == any_(uuids("facts")))
    turns = _listed("turns")
    turn = select(turns.c.id, turns.c.ordinal, turns.c.id, turns.c.ordinal)
    return union_all(fact, turn).subquery("of")


def _listed(name: str) -> FromClause:
    ordinals = bindparam(f"{name}_ordinals", type_=ARRAY(Integer))
    pairs = func.unnest(uuids(f"{name}_ids"), ordinals)
    return pairs.table_valued("id", "ordinal").render_derived()


def uuids(name: str) -> ColumnElement[Any]:
    """An array of ids as a parameter of this name."""
    return bindparam(name, type_=ARRAY(Uuid))


def as_turn(row: Row[Any]) -> Turn:
    """Build a turn from a row."""
    return value_of(
        Turn,
        row,
        id=PassageKey(row.event_id, row.ordinal).public_id,
        scope=Scope.of(row),
        role=Role(row.role),
        speaker=row.name,
    )
