"""Walks over stored texts whose terms are cut again after a change of the tokenizer."""

from __future__ import annotations

from sqlalchemy import Column, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata

# One row for each table with terms.
term_cuts = Table(
    "term_cuts",
    metadata,
    Column("name", Text, primary_key=True),
    # Version of the tokenizer with which all rows were cut: pipeline.text.terms.CUT.
    Column("cut", SmallInteger, nullable=False),
    # Primary key of the last row of the walk to the present version; NULL: it has not begun.
    Column("position", JSONB(none_as_null=True)),
)
