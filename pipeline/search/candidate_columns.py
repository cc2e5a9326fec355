"""Candidate columns: what a search reads of each passage, its turn and the turn before that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    CompoundSelect,
    FromClause,
    Integer,
    ScalarSelect,
    Select,
    any_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    nulls_last,
    select,
    true,
)

from pipeline.domain.messages import Role
from pipeline.domain.passages import FACT, PassageKey
from pipeline.ledger.filter_conditions import message_at
from pipeline.ledger.tables import events, messages
from pipeline.search.candidates import Candidate
from pipeline.turns.store import forgotten, just_before, turn_passages

WITH_TERMS = bindparam("with_terms", type_=Boolean)
QUESTION_MARKS: ColumnElement[Any] = literal_column("ARRAY['?', '？']")


def fact_columns(facts: FromClause) -> list[ColumnElement[Any]]:
    """Columns of memories as passages; the same as those of turns."""
    by_user = case(
        (facts.c.attributed_to == Role.ASSISTANT, facts.c.agent_id), else_=facts.c.user_id
    )
    return [
        facts.c.id,
        cast(literal(FACT), Integer).label("ordinal"),
        facts.c.lane_id,
        facts.c.event_id,
        facts.c.message_ordinal,
        cast(null(), BigInteger).label("seq"),
        by_user.label("speaker"),
        facts.c.said_at,
        facts.c.subject.is_not(None).label("has_subject"),
        func.cardinality(facts.c.terms).label("length"),
    ]


def turn_columns(turns: FromClause = turn_passages) -> list[ColumnElement[Any]]:
    """Columns of turns as passages; the same as those of memories."""
    by_role = case((turns.c.role == Role.ASSISTANT, turns.c.agent_id), else_=turns.c.user_id)
    return [
        turns.c.event_id.label("id"),
        turns.c.ordinal,
        turns.c.lane_id,
        turns.c.event_id,
        turns.c.ordinal.label("message_ordinal"),
        turns.c.seq,
        func.coalesce(turns.c.name, by_role).label("speaker"),
        turns.c.said_at,
        literal(False).label("has_subject"),
        func.cardinality(turns.c.terms).label("length"),
    ]


def placed_facts(facts: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    """Select memories as candidates, each with its turn and the turn before that."""
    # Limits, so the planner looks up one event and one message, with the event's number, for each
    # fact: it would read all messages of the lane rather than wait for the number.
    event = (
        select(events.c.seq)
        .where(events.c.id == facts.c.event_id, events.c.lane_id == facts.c.lane_id)
        .limit(1)
        .lateral("its_event")
    )
    turn = (
        select(messages)
        .where(
            messages.c.lane_id == facts.c.lane_id,
            messages.c.seq == event.c.seq,
            messages.c.ordinal == facts.c.message_ordinal,
        )
        .limit(1)
        .lateral("turn")
    )
    before = just_before(turn)
    speaker = func.coalesce(turn.c.name, facts.c.speaker)
    return (
        select(*_candidate_columns(facts, turn, before, speaker, turn.c.content), *more)
        .select_from(facts)
        .outerjoin(event, true())
        .outerjoin(turn, true())
        .outerjoin(before, true())
    )


def placed_turns(turns: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    """Select turns as candidates, each with the turn before it."""
    before = just_before(turns)
    its_message = (
        select(messages.c.content)
        .where(message_at(turns.c.ordinal, turns))
        .limit(1)  # so the planner looks up one message for each turn
        .lateral("its_message")
    )
    content = its_message.c.content
    return (
        select(*_candidate_columns(turns, turns, before, turns.c.speaker, content), *more)
        .select_from(turns)
        .join(its_message, true())
        .outerjoin(before, true())
        .where(~forgotten(turns))
    )


def _candidate_columns(
    passages: FromClause,
    turn: FromClause,
    before: FromClause,
    speaker: ColumnElement[Any],
    content: ColumnElement[Any],
) -> list[ColumnElement[Any]]:
    """Columns of a candidate; see `as_candidate`."""
    last = func.right(func.rtrim(content), 1)
    return [
        passages.c.id,
        passages.c.ordinal,
        passages.c.lane_id,
        speaker.label("speaker"),
        passages.c.said_at.label("at"),
        turn.c.seq.label("turn_seq"),
        turn.c.ordinal.label("turn_ordinal"),
        before.c.seq.label("before_seq"),
        before.c.ordinal.label("before_ordinal"),
        passages.c.has_subject,
        passages.c.length,
        func.coalesce(last == any_(QUESTION_MARKS), literal(False)).label("is_question"),
    ]


def as_candidate(row: Mapping[str, Any]) -> Candidate:
    """Build a candidate. Columns are read by key, in C, because there may be hundreds of rows."""
    turn, before = row["turn_seq"], row["before_seq"]
    return Candidate(
        PassageKey(row["id"], row["ordinal"]),
        row["lane_id"],
        row["speaker"],
        row["at"],
        None if turn is None else (turn, row["turn_ordinal"]),
        None if before is None else (before, row["before_ordinal"]),
        row.get("embedding"),
        row.get("terms") or (),
        row["has_subject"],
        row["length"] or 0,
        row["is_question"],
        row.get("words") or (),
        row.get("parts") or (),
    )


def best_first(
    placed: Select[Any] | CompoundSelect[Any], **totals: ScalarSelect[Any]
) -> Select[Any]:
    """Select candidates, best first, each with `totals`; without candidates, one row of NULLs."""
    rows = placed.subquery("rows")
    sizes = select(*(value.label(name) for name, value in totals.items())).subquery("sizes")
    query = select(*sizes.c, *rows.c).select_from(sizes.outerjoin(rows, true()))
    return query.order_by(nulls_last(rows.c.share.desc()), rows.c.id, rows.c.ordinal)
