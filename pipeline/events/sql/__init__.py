"""The SQL statements of events, one file each: `statement("x")` is x.sql."""

from __future__ import annotations

from pipeline.ledger.sql_files import loader

statement = loader(__name__, "pipeline.lanes.sql")
