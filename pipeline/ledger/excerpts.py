"""Excerpts for pages of many rows: shortened texts, and only as many rows as fit a byte limit."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, func, literal_column, or_, select

# Characters of a text on a page of events or changes; the single event or history has all of it.
SHOWN_CHARACTERS = 1_000
# Maximum bytes of messages, and of receipt lines, on a page for each event; a row is counted as
# ROW_BYTES more than its texts, so short texts are not thousands of rows.
SHOWN_BYTES, ROW_BYTES = 20_000, 100
# Larger options of an event are left out of a page.
SHOWN_OPTIONS_BYTES = 8_000

_LARGEST_CUT_BYTES = 4 * SHOWN_CHARACTERS
_ROW: ColumnElement[int] = literal_column(str(ROW_BYTES), Integer)


def cut(text: ColumnElement[Any]) -> ColumnElement[Any]:
    """The first SHOWN_CHARACTERS characters of a text column."""
    return func.left(text, SHOWN_CHARACTERS)


def first_rows(rows: Select[Any], *, of: str, order: str, texts: tuple[str, ...]) -> Select[Any]:
    """Select the first rows of each `of`, by `order`, up to SHOWN_BYTES of rows.

    `truncated` is true if a text of the row was shortened, or if later rows were left out.
    """
    every = rows.subquery("every")
    sizes = [func.coalesce(func.octet_length(every.c[name]), 0) for name in texts]
    size = reduce(add, (func.least(length, _LARGEST_CUT_BYTES) for length in sizes), _ROW)
    counted = select(
        every,
        func.sum(size).over(partition_by=every.c[of], order_by=every.c[order]).label("so_far"),
        func.sum(size).over(partition_by=every.c[of]).label("in_all"),
    ).subquery("counted")
    longer = [func.coalesce(func.length(counted.c[name]), 0) > SHOWN_CHARACTERS for name in texts]
    return (
        select(
            *(column for column in counted.c if column.key not in (*texts, "so_far", "in_all")),
            *(cut(counted.c[name]).label(name) for name in texts),
            or_(*longer, counted.c.in_all > SHOWN_BYTES).label("truncated"),
        )
        .where(counted.c.so_far <= SHOWN_BYTES)
        .order_by(counted.c[of], counted.c[order])
    )
