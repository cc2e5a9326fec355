"""States of memories at a time, as a table with the column names of `memories`.

    as_of      stored ≤ as_of < replaced: the state of each memory that was stored then
    valid_at   the newest statement that holds then: see `_valid`
    superseded earlier texts of current memories, and statements that a later one replaced

A filter on the table reaches its base tables, so the cost grows with the memories of the filter's
owner. The SQL depends only on the kind of a snapshot; times and ids are parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    select,
    true,
    tuple_,
    union_all,
)

from pipeline.domain.suggestions import SuggestionKind
from pipeline.domain.versions import SnapshotKind
from pipeline.ledger.filter_conditions import IN_PROJECT
from pipeline.ledger.tables import memories, memory_history, past_states, receipts, suggestions
from pipeline.ledger.tables.memories import NOT_KEPT
from pipeline.memories.superseded import current_of_slot
from pipeline.text.statements.slots import Cardinality

MOMENT = DateTime(timezone=True)
AS_OF: BindParameter[datetime] = bindparam("as_of", type_=MOMENT)
VALID_AT: BindParameter[datetime] = bindparam("valid_at", type_=MOMENT)
COLUMNS = tuple(column.name for column in memories.columns if column.name not in NOT_KEPT)
# States of rows that a read shows besides ACTIVE.
SUPERSEDED, MERGED = "SUPERSEDED", "MERGED"


def reference_time(kind: SnapshotKind) -> BindParameter[datetime] | None:
    """The parameter with the time whose expiration dates count; None for the present."""
    return VALID_AT if kind.valid_at else AS_OF if kind.as_of else None


@lru_cache(256)
def states(kind: SnapshotKind, pins: tuple[str, ...] = ()) -> FromClause:
    """The states that a snapshot of this kind shows, in the project `in_project`.

    `pins`: columns that equal the parameters of `pin_values` in all of its rows. `id` is that of
    the memory, except for an earlier text of a current memory, which has an id of its own. `state`
    is ACTIVE, SUPERSEDED or MERGED.
    """
    if kind.valid_at:
        return _valid(kind, pins).subquery("states")
    parts = [_active(kind, pins)]
    if kind.superseded:
        parts.append(_earlier(kind, pins))
    if kind.superseded or kind.merged:
        parts.append(_replaced(kind, pins))
    return union_all(*parts).subquery("states") if len(parts) > 1 else parts[0].subquery("states")


def pin_values(pins: dict[str, Any]) -> dict[str, Any]:
    """Parameters of `states` for columns with these values."""
    return {f"pin_{name}": value for name, value in pins.items()}


def pinned_columns(table: Table, pins: Sequence[str]) -> ColumnElement[bool]:
    """Match the rows of the project whose columns equal the parameters of `pin_values`."""
    equal = (table.c[name] == bindparam(f"pin_{name}", type_=table.c[name].type) for name in pins)
    return and_(table.c.project_id == IN_PROJECT, *equal)


def _as_of(kind: SnapshotKind) -> BindParameter[datetime] | None:
    return AS_OF if kind.as_of else None


def _current(as_of: BindParameter[datetime] | None, pins: Sequence[str]) -> Select[Any]:
    """The current state of each memory, if it was stored by the time of the snapshot."""
    since = func.coalesce(memories.c.stored_at, memories.c.updated_at)
    rows = select(
        memories.c.id,
        memories.c.id.label("memory_id"),
        *(memories.c[name] for name in COLUMNS),
        since.label("stored_at"),
        cast(null(), MOMENT).label("replaced_at"),
    ).where(pinned_columns(memories, pins))
    return rows if as_of is None else rows.where(since <= as_of)


def _past(as_of: BindParameter[datetime] | None, pins: Sequence[str]) -> Select[Any]:
    """All past states that were stored by the time of the snapshot."""
    rows = select(
        past_states.c.id,
        past_states.c.memory_id,
        *(past_states.c[name] for name in COLUMNS),
        past_states.c.stored_at,
        past_states.c.replaced_at,
    ).where(pinned_columns(past_states, pins))
    return rows if as_of is None else rows.where(past_states.c.stored_at <= as_of)


def last(as_of: BindParameter[datetime] | None, pins: Sequence[str]) -> FromClause:
    """The last state of each memory at a time, also of those deleted by then; None is now."""
    current = _current(as_of, pins)
    if as_of is None:
        return current.subquery()
    past = _past(as_of, pins).where(past_states.c.replaced_at > as_of)
    return union_all(current, past).subquery()


def is_older(rows: FromClause) -> ColumnElement[bool]:
    """Match rows of `states` that are active, but older statements of their slot."""
    return and_(rows.c.state == "ACTIVE", rows.c.superseded_by.is_not(None))


def _active(kind: SnapshotKind, pins: Sequence[str]) -> Select[Any]:
    """The active memories; `superseded_by` names the current statement of their slot."""
    rows, others = (_by_memory(last(_as_of(kind), of)) for of in (pins, ()))
    current = current_of_slot(rows, others, reference_time(kind))
    superseded_by = func.coalesce(rows.c.superseded_by, current)
    return _shown(rows, superseded_by=superseded_by).where(rows.c.state == "ACTIVE")


def _by_memory(rows: FromClause) -> FromClause:
    """The rows with the id of their memory as `id`."""
    columns = [column for column in rows.c if column.name != "id"]
    return select(rows.c.memory_id.label("id"), *columns).subquery()


def _shown(
    rows: FromClause,
    *,
    id_: ColumnElement[Any] | None = None,
    state: ColumnElement[Any] | None = None,
    superseded_by: ColumnElement[Any] | None = None,
) -> Select[Any]:
    """The columns of `states`, with these in the place of the row's own."""
    own = {
        "state": rows.c.state if state is None else state,
        "superseded_by": rows.c.superseded_by if superseded_by is None else superseded_by,
    }
    return select(
        (rows.c.memory_id if id_ is None else id_).label("id"),
        rows.c.memory_id,
        *(own.get(name, rows.c[name]).label(name) for name in COLUMNS),
        rows.c.stored_at,
    )


def _earlier(kind: SnapshotKind, pins: Sequence[str]) -> Select[Any]:
    """Earlier texts of current memories, each once, without those that an undo withdrew."""
    past, now = _past(_as_of(kind), pins).subquery(), last(_as_of(kind), pins)
    again, undone = past_states.alias("again"), memory_history.alias("undone")
    replaced = [again.c.replaced_at <= AS_OF] if kind.as_of else []
    repeated = exists().where(
        again.c.memory_id == past.c.memory_id,
        again.c.text == past.c.text,
        tuple_(again.c.stored_at, again.c.version, again.c.id)
        > tuple_(past.c.stored_at, past.c.version, past.c.id),
        *replaced,
    )
    withdrawn = exists().where(
        undone.c.memory_id == past.c.memory_id,
        undone.c.version == past.c.version + 1,
        undone.c.undoes.is_not(None),
    )
    return (
        _shown(past, id_=past.c.id, state=literal(SUPERSEDED), superseded_by=past.c.memory_id)
        .join(now, now.c.memory_id == past.c.memory_id)
        .where(
            now.c.state == "ACTIVE",
            now.c.text != past.c.text,
            past.c.state == "ACTIVE",
            *([past.c.replaced_at <= AS_OF] if kind.as_of else []),
            ~repeated,
            ~withdrawn,
        )
    )


def _replaced(kind: SnapshotKind, pins: Sequence[str]) -> Select[Any]:
    """Memories that another one replaced, or that an accepted suggestion merged into it."""
    rows, own = last(_as_of(kind), pins), memory_history.alias("own")
    merged = exists().where(
        own.c.memory_id == rows.c.memory_id,
        own.c.version == rows.c.version,
        receipts.c.event_id == own.c.event_id,
        receipts.c.memory_id == own.c.memory_id,
        suggestions.c.id == receipts.c.suggestion_id,
        suggestions.c.kind == SuggestionKind.COMBINE,
    )
    shown = _shown(rows, state=case((merged, literal(MERGED)), else_=literal(SUPERSEDED))).where(
        rows.c.state != "ACTIVE", rows.c.superseded_by.is_not(None), rows.c.replaced_by.is_(None)
    )
    if kind.superseded and kind.merged:
        return shown
    return shown.where(merged if kind.merged else not_(merged))


def _valid(kind: SnapshotKind, pins: Sequence[str]) -> Select[Any]:
    """The statements that held at a time in the world, as far as they were stored.

    A state holds from its `valid_from`. An update by an event ends the state before it, and so does
    a delete by an event, at the time of its statement. A change by a person, an undo or a replay
    corrects the state before it, which then never held. A memory that a person deleted is left out
    with all its states.

    Of the states of one memory that hold, the one stored last counts. Of a memory and the
    statements that it superseded, the one that was said last counts.
    """
    as_of = _as_of(kind)
    stored = union_all(_current(as_of, pins), _past(as_of, pins)).subquery("stored")
    is_last: ColumnElement[bool] = stored.c.replaced_at.is_(None)
    known = [] if as_of is None else [memory_history.c.created_at <= as_of]
    own = _history(stored, stored.c.version, "own")
    later = _history(stored, stored.c.version + 1, "later", *known)
    if as_of is not None:
        is_last = or_(is_last, stored.c.replaced_at > as_of)
    stands = or_(stored.c.state == "ACTIVE", stored.c.superseded_by.is_not(None))
    # Only a change by an event that added messages names one of them.
    deleted = and_(not_(stands), own.c.message_ordinal.is_(None))
    ended = func.coalesce(own.c.said_at, stored.c.updated_at)
    withdrawn = and_(is_last, or_(deleted, stored.c.replaced_by.is_not(None)))
    timeline = (
        select(
            stored,
            stands.label("stands"),
            is_last.label("is_last"),
            case((stands, stored.c.valid_from), else_=ended).label("begins"),
            func.bool_or(withdrawn).over(partition_by=stored.c.memory_id).label("withdrawn"),
            and_(later.c.version.is_not(None), later.c.message_ordinal.is_(None)).label(
                "corrected"
            ),
        )
        .select_from(stored.outerjoin(own, true()).outerjoin(later, true()))
        .subquery("timeline")
    )
    newest = _first(
        timeline,
        timeline.c.memory_id,
        timeline.c.stored_at.desc(),
        timeline.c.version.desc(),
        timeline.c.is_last.desc(),
        where=and_(~timeline.c.corrected, ~timeline.c.withdrawn, timeline.c.begins <= VALID_AT),
    )
    best = _first(
        newest,
        func.coalesce(newest.c.superseded_by, newest.c.memory_id),
        newest.c.said_at.desc(),
        newest.c.stored_at.desc(),
        where=and_(newest.c.place == 1, newest.c.stands),
    )
    in_slot = _without_older(best)
    current = and_(in_slot.c.is_last, in_slot.c.state == "ACTIVE")
    return _shown(
        in_slot,
        state=case((current, literal("ACTIVE")), else_=literal(SUPERSEDED)),
        superseded_by=case((~current, func.coalesce(in_slot.c.superseded_by, in_slot.c.memory_id))),
    ).where(~in_slot.c.older)


def _history(
    stored: FromClause, version: ColumnElement[int], name: str, *known: ColumnElement[bool]
) -> FromClause:
    """The history row of a version, as a look-up for each row of `stored`.

    The generic plan of a join would read the history of all tenants.
    """
    row = select(
        memory_history.c.version, memory_history.c.message_ordinal, memory_history.c.said_at
    )
    this = (memory_history.c.memory_id == stored.c.memory_id, memory_history.c.version == version)
    return row.where(*this, *known).limit(1).lateral(name)


def _without_older(best: FromClause) -> FromClause:
    """The first rows of their group; `older` if a newer statement of the slot replaces one.

    As in `pipeline.memories.superseded`, one of the two must have been appended.
    """
    first = select(best).where(best.c.place == 1).subquery()
    newer: dict[str, Any] = {
        "partition_by": (first.c.lane_id, first.c.slot),
        "order_by": (first.c.said_at.desc(), first.c.memory_id.desc()),
        "rows": (None, -1),
    }
    single = first.c.cardinality.is_distinct_from(Cardinality.SEVERAL)
    by_appended = func.coalesce(func.bool_or(first.c.appended).over(**newer), false())
    by_any = func.coalesce(func.bool_or(single).over(**newer), false())
    replaced = or_(by_appended, and_(first.c.appended, by_any))
    older = and_(first.c.slot.is_not(None), replaced)
    return select(first, older.label("older")).subquery()


def _first(
    rows: FromClause,
    group: ColumnElement[Any],
    *order: ColumnElement[Any],
    where: ColumnElement[bool],
) -> FromClause:
    """The rows with their place in their group; `place` 1 is the first."""
    place = func.row_number().over(partition_by=group, order_by=order)
    columns = [column for column in rows.c if column.name != "place"]
    return select(*columns, place.label("place")).where(where).subquery()
