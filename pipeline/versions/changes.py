"""Comparison of the memories at two times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Integer,
    Row,
    Select,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    true,
)

from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.excerpts import SHOWN_CHARACTERS
from pipeline.ledger.filter_conditions import IN_PROJECT, shown
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memories, memory_history
from pipeline.memories.rows import as_memory
from pipeline.versions.states import COLUMNS, MOMENT, last, pin_values, pinned_columns

SINCE: BindParameter[datetime] = bindparam("since", type_=MOMENT)
UNTIL: BindParameter[datetime] = bindparam("until", type_=MOMENT)
REACH: BindParameter[int] = bindparam("reach", type_=Integer)
# Changes behind the page that are compared and counted; takes some 20 ms.
COUNTED = 1_000
# Ids of which a scope has few memories. Others are searched among the changes of the project.
NARROW = frozenset({"user_id", "run_id"})
# Columns of which a difference is a change.
COMPARED = ("text", "metadata", "categories", "expiration_date", "immutable", "valid_from")
# Characters that are read of a text; a longer one is cut after one more.
MOST_READ_CHARACTERS = 4_000
# Characters of a text that a response shows.
MOST_SHOWN_CHARACTERS = SHOWN_CHARACTERS
READ = tuple(name for name in COLUMNS if name not in ("embedding", "terms"))


class ChangeKind(StrEnum):
    """Difference between two times."""

    ADDED = "added"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A memory at two times. `before` and `after`: None if it was not active then."""

    memory_id: UUID
    kind: ChangeKind
    before: Memory | None
    after: Memory | None


class Changes(LedgerStore):
    """Store that compares two times."""

    async def page(
        self,
        project_id: ProjectId,
        since: datetime,
        until: datetime,
        *,
        ids: Mapping[str, str],
        memory_id: UUID | None,
        limit: int,
        offset: int,
    ) -> tuple[list[MemoryChange], dict[ChangeKind, int], bool]:
        """A page of the memories that differ, newest change first, and the numbers of all.

        `ids`: entity ids that the memories have. Expired memories are compared like others. The
        third value is True if the page and the numbers are those of the newest changes of the
        project only, `COUNTED` behind the page: without a memory, a user or a run.
        """
        query = _page(tuple(sorted(ids)), of_memory=memory_id is not None)
        values = {"in_project": project_id, "since": since, "until": until, "memory": memory_id}
        values |= pin_values(dict(ids)) | {"reach": offset + limit + COUNTED}
        rows = await self._direct.rows(query, values | {"limit": limit, "offset": offset})
        numbers = {kind: getattr(rows[0], kind.value) for kind in ChangeKind}
        changes = [_change(row) for row in rows if row.kind is not None]
        return changes, numbers, rows[0].walked == values["reach"]


@cache
def _page(pins: tuple[str, ...], *, of_memory: bool) -> Select[Any]:
    """Select a page of the memories that differ, with the columns of both times.

    Each row has the numbers of all of them, by kind, and that of the changes walked. At least one
    row: without a memory, its `kind` is NULL. Only the memories of the page are read whole.
    """
    walked = _walked()
    wide = not of_memory and NARROW.isdisjoint(pins)
    number = select(func.count()).select_from(walked).scalar_subquery() if wide else literal(0)
    differing = _differing(pins, walked, of_memory=of_memory).cte("differing")
    counts = (func.count().filter(differing.c.kind == kind.value) for kind in ChangeKind)
    of_kinds = (count.label(kind.value) for count, kind in zip(counts, ChangeKind, strict=True))
    numbers = select(*of_kinds, number.label("walked")).select_from(differing).subquery("numbers")
    newest = select(differing).order_by(differing.c.at.desc(), differing.c.id)
    newest = newest.limit(bindparam("limit", type_=Integer))
    page = newest.offset(bindparam("offset", type_=Integer)).subquery("page")
    before, after = (_active(time, pins, page, of_memory=of_memory) for time in (SINCE, UNTIL))
    shown = (
        select(
            page,
            *(_shown(before, name).label(f"before_{name}") for name in READ),
            *(_shown(after, name).label(f"after_{name}") for name in READ),
        )
        .select_from(page.outerjoin(before, true()).outerjoin(after, true()))
        .subquery("shown")
    )
    rows = select(numbers, shown).select_from(numbers.outerjoin(shown, true()))
    return rows.order_by(shown.c.at.desc(), shown.c.id)


def _differing(pins: tuple[str, ...], walked: FromClause, *, of_memory: bool) -> Select[Any]:
    """Select the memories that differ, with the kind and the time of the difference."""
    changed = _changed(pins, walked, of_memory=of_memory).cte("changed")
    before, after = (_active(time, pins, changed, of_memory=of_memory) for time in (SINCE, UNTIL))
    kind = case(
        (before.c.id.is_(None), literal(ChangeKind.ADDED.value)),
        (after.c.id.is_(None), literal(ChangeKind.GONE.value)),
        else_=literal(ChangeKind.CHANGED.value),
    )
    differs = or_(*(before.c[name].is_distinct_from(after.c[name]) for name in COMPARED))
    appeared = before.c.id.is_(None) != after.c.id.is_(None)
    at = func.coalesce(after.c.stored_at, before.c.replaced_at).label("at")
    return (
        select(changed.c.id, kind.label("kind"), at)
        .select_from(changed.outerjoin(before, true()).outerjoin(after, true()))
        .where(or_(appeared, and_(before.c.id.is_not(None), differs)))
    )


def _shown(rows: FromClause, name: str) -> ColumnElement[Any]:
    column = rows.c[name]
    return func.left(column, MOST_READ_CHARACTERS + 1) if name == "text" else column


def _changed(pins: tuple[str, ...], walked: FromClause, *, of_memory: bool) -> Select[Any]:
    """Ids of the memories that have changed between the times.

    With narrow pins: the memories with these ids that have changed, a look-up for each. Otherwise
    the newest changes of the project, by time, with or without pins.
    """
    if of_memory:
        return select(bindparam("memory", type_=Uuid).label("id"))
    if not NARROW.isdisjoint(pins):
        changed = (
            select(memory_history.c.version)
            .where(memory_history.c.memory_id == memories.c.id, _within())
            .limit(1)
            .lateral("changed")
        )
        return (
            select(memories.c.id)
            .select_from(memories.join(changed, true()))
            .where(pinned_columns(memories, pins), shown(memories, pins))
        )
    ids = select(walked.c.memory_id.label("id")).distinct()
    if not pins:
        return ids
    newest = ids.subquery("newest")
    its = (
        select(memories.c.id)
        .where(memories.c.id == newest.c.id, pinned_columns(memories, pins))
        .limit(1)
        .lateral("its")
    )
    return select(its.c.id).select_from(newest.join(its, true()))


def _within() -> ColumnElement[bool]:
    """Match the changes of the project between the times."""
    history = memory_history.c
    times = (history.created_at > SINCE, history.created_at <= UNTIL)
    return and_(history.project_id == IN_PROJECT, *times)


def _walked() -> FromClause:
    """The newest changes of the project, REACH at most, by the index without temporary runs."""
    history = memory_history.c
    order = (history.created_at.desc(), history.memory_id, history.version.desc())
    newest = select(history.memory_id).where(_within(), ~history.temporary).order_by(*order)
    return newest.limit(REACH).cte("walked")


def _active(
    time: BindParameter[datetime], pins: tuple[str, ...], changed: FromClause, *, of_memory: bool
) -> FromClause:
    """The state of a changed memory at a time, if it was active: a look-up for each."""
    rows = last(time, pins)
    columns = [rows.c[name] for name in (*READ, "stored_at", "replaced_at")]
    visible = true() if of_memory else shown(rows, pins)
    return (
        select(rows.c.memory_id.label("id"), *columns)
        .where(rows.c.memory_id == changed.c.id, rows.c.state == "ACTIVE", visible)
        .limit(1)
        .lateral()
    )


def _change(row: Row[Any]) -> MemoryChange:
    kind = ChangeKind(row.kind)
    before = None if kind is ChangeKind.ADDED else _memory(row, "before_")
    after = None if kind is ChangeKind.GONE else _memory(row, "after_")
    return MemoryChange(row.id, kind, before, after)


@dataclass(frozen=True, slots=True)
class _Side:
    """The columns of one time, under their own names."""

    row: Row[Any]
    prefix: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name if name == "id" else self.prefix + name)


def _memory(row: Row[Any], prefix: str) -> Memory:
    return as_memory(_Side(row, prefix))  # type: ignore[arg-type]
