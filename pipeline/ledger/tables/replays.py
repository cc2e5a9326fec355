"""Shadows: replays of whole scopes.

The id is also the id of a project without a row or an API key, so no client can read the results
in it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, now, scope_ids, time

shadows = Table(
    "shadows",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    *scope_ids(),
    # Options that override the configuration.
    Column("custom_instructions", Text),
    Column("llm_model", Text),
    Column("embedder_model", Text),
    Column("recorded", Boolean, nullable=False, server_default="false"),
    # Last seq of the scope's lane that was considered for the copy.
    Column("copied_seq", BigInteger, nullable=False, server_default="0"),
    now("created_at"),
    time("switched_at"),
    Index("ix_shadows_project", "project_id", "created_at"),
)
