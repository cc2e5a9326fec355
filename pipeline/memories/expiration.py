"""Expiration dates of memories: an expired memory stays stored, but lists and searches omit it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Date, FromClause, cast, func, or_

from pipeline.ledger.tables import memories


def unexpired(
    table: FromClause = memories, at: ColumnElement[datetime] | None = None
) -> ColumnElement[bool]:
    """Match rows that have no expiration date, or one of today (UTC) or later.

    `table`: memories, or a table with the same column `expiration_date`. `at`: the time whose day
    counts in place of today.
    """
    day = cast(func.timezone("UTC", func.now() if at is None else at), Date)
    return or_(table.c.expiration_date.is_(None), table.c.expiration_date >= day)
