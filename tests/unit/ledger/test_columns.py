"""Columns of the ledger's tables."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables import metadata


def test_none_is_null_in_each_column_of_json_that_can_be_empty() -> None:
    """By default SQLAlchemy stores the JSON value null, which is not NULL and is no list."""
    columns = [column for table in metadata.tables.values() for column in table.columns]
    empty = [c for c in columns if c.nullable and isinstance(c.type, JSONB)]
    assert len(empty) > 5
    assert [str(c) for c in empty if not getattr(c.type, "none_as_null", True)] == []
