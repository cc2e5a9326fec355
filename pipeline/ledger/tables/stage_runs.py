"""Stage runs: output and cost of each stage of a batch, and cost of its failed tries."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Identity, Index, Integer, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.ledger.tables.columns import metadata, now, partial

stage_runs = Table(
    "stage_runs",
    metadata,
    Column("batch_id", Uuid, primary_key=True),
    Column("stage", Text, primary_key=True),
    # The lane of the texts in the output; a batch that was split has no events to look it up.
    Column("lane_id", Uuid, nullable=False),
    # NULL: deleted after the retention time, or erased.
    Column("output", JSONB(none_as_null=True)),
    Column("model", Text, nullable=False, server_default=""),
    # Name and version of the prompt, as in `extract@0f3c52b7a9e1`; empty without a model call.
    Column("prompt", Text, nullable=False, server_default=""),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("prompt_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("ms", Float, nullable=False),
    now("finished_at"),
    Index("ix_stage_runs_lane", "lane_id"),
    partial("ix_stage_runs_kept", "finished_at", where="output IS NOT NULL"),
)

# The lanes whose memories an export or a summary was made of. The id of a project stands for all of
# its lanes.
answer_sources = Table(
    "answer_sources",
    metadata,
    Column("lane_id", Uuid, primary_key=True),
    Column("batch_id", Uuid, primary_key=True, index=True),
)

# Costs of failed tries.
failed_runs = Table(
    "failed_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("batch_id", Uuid, nullable=False),
    Column("stage", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt", Text, nullable=False, server_default=""),
    Column("calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("ms", Float, nullable=False),
    now("finished_at"),
    Index("ix_failed_runs_batch", "batch_id"),
)
