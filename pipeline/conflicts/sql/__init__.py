"""The SQL statements of conflicts, one file each: `statement("x")` is x.sql."""

from __future__ import annotations

from pipeline.ledger.sql_files import loader

statement = loader(__name__)
