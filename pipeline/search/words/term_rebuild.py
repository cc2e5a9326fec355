"""Rebuild of the search terms: the sweeper cuts stored texts into terms, in small steps.

Messages without terms: a long text is accepted before it is cut, and its process cuts it right
afterwards; if that process ends in between, the sweeper does it. All texts, after a change of the
tokenizer:

Each table is walked once, by its primary key. A step commits its rows with its position, so the
walk goes on where it was stopped. A row that was written at the same time keeps its new terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    and_,
    bindparam,
    func,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.ledger.filter_conditions import of_event
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import events, memories, messages, term_cuts
from pipeline.text.terms import CUT, cut

# Key of an advisory lock; no other lock uses it.
LOCK = 0x6375742A
# Age of a message without terms that no other process is about to cut.
UNCUT_FOR_S = 10.0
# Rows of one step, and steps between two pauses. Only the start of a long text has terms.
ROWS, STEPS, LONGEST_CHARS = 500, 5, 200_000
# The tables with texts and their terms, and the columns of the texts.
TEXTS = {"memories": (memories, memories.c.text), "messages": (messages, messages.c.content)}


class TermRebuild(LedgerStore):
    """Compute stored search terms again after a change of the tokenizer."""

    async def walk(self) -> None:
        """Take the next steps, at most STEPS: nothing, once all texts are cut again."""
        await self.cut_missing(uncut_for_s=UNCUT_FOR_S)
        for _ in range(STEPS):
            if not await self._step():
                return

    async def cut_missing(self, *, uncut_for_s: float) -> int:
        """Cut messages that were accepted so long ago and have no terms. Returns their number."""
        key = [messages.c.lane_id, messages.c.seq, messages.c.ordinal]
        query = (
            select(*key, func.left(messages.c.content, LONGEST_CHARS).label("text"))
            .join(events, of_event())
            .where(
                messages.c.terms.is_(None),
                events.c.created_at < func.now() - timedelta(seconds=uncut_for_s),
            )
            .limit(ROWS)
        )
        async with self._engine.begin() as connection:
            rows = (await connection.execute(query)).all()
            if not rows:
                return 0
            texts = await cut([row.text for row in rows])
            changed = [
                {f"key_{column.name}": getattr(row, column.name) for column in key} | {"after": of}
                for row, of in zip(rows, texts, strict=True)
            ]
            where = and_(*_is_keyed(key), messages.c.terms.is_(None))
            after = bindparam("after", type_=messages.c.terms.type)
            await connection.execute(update(messages).where(where).values(terms=after), changed)
        return len(rows)

    async def _step(self) -> bool:
        """Cut the next rows of one table again.

        False if nothing is left, or if another process does it.
        """
        behind = select(term_cuts).where(term_cuts.c.cut < CUT).order_by(term_cuts.c.name).limit(1)
        async with self._engine.begin() as connection:
            if not await connection.scalar(select(func.pg_try_advisory_xact_lock(LOCK))):
                return False
            walk = (await connection.execute(behind)).one_or_none()
            if walk is not None:
                await _cut_next(connection, *TEXTS[walk.name], walk.position)
            return walk is not None


async def _cut_next(
    connection: AsyncConnection, table: Table, text: Column[str], position: list[Any] | None
) -> None:
    """Cut the rows after the position again, and store the position of the last one."""
    key = list(table.primary_key.columns)
    query = select(*key, func.left(text, LONGEST_CHARS).label("text"), table.c.terms)
    if position is not None:
        pairs = zip(_values(key, position), key, strict=True)
        last = [literal(value, column.type) for value, column in pairs]
        query = query.where(tuple_(*key) > tuple_(*last))
    rows = (await connection.execute(query.order_by(*key).limit(ROWS))).all()
    await _write(connection, table, rows)
    whole = len(rows) < ROWS
    reached = None if whole else [str(getattr(rows[-1], column.name)) for column in key]
    now = {"cut": CUT, "position": None} if whole else {"position": reached}
    mine = term_cuts.c.name == table.name
    await connection.execute(update(term_cuts).where(mine).values(now))


async def _write(connection: AsyncConnection, table: Table, rows: Sequence[Any]) -> None:
    """Write the terms that differ, unless the row has other ones by now."""
    key = list(table.primary_key.columns)
    changed = [
        {
            **{f"key_{column.name}": getattr(row, column.name) for column in key},
            "before": list(row.terms),
            "after": terms,
        }
        for row, terms in zip(rows, await cut([row.text for row in rows]), strict=True)
        if row.terms is not None and list(row.terms) != terms
    ]
    if not changed:
        return
    before = bindparam("before", type_=table.c.terms.type)
    after = bindparam("after", type_=table.c.terms.type)
    where = and_(*_is_keyed(key), table.c.terms == before)
    await connection.execute(update(table).where(where).values(terms=after), changed)


def _is_keyed(key: Sequence[Column[Any]]) -> list[ColumnElement[bool]]:
    """Match the row whose key is in the parameters `key_…`."""
    return [column == bindparam(f"key_{column.name}", type_=column.type) for column in key]


def _values(key: list[Column[Any]], position: list[Any]) -> list[Any]:
    """The values of a stored position, in the types of the key's columns."""
    return [
        UUID(value) if column.type.python_type is UUID else int(value)
        for column, value in zip(key, position, strict=True)
    ]
