"""Runs of the curator, and the model's answers of their steps until a run has ended."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

curator_runs = Table(
    "curator_runs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("lane_id", Uuid, nullable=False),
    # `request` or `schedule`.
    Column("origin", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="QUEUED"),
    # As in lanes: raised when the run is claimed, and checked by every write of a worker.
    Column("fence", BigInteger, nullable=False, server_default="0"),
    # Time at which the sweeper publishes a hint: the end of a worker's lease, or of a wait.
    time("due_at"),
    # True from its hint to the next wait: then its hint is in the broker, or a worker has it.
    Column("hinted", Boolean, nullable=False, server_default="false"),
    # Claims of the current step that did not end, and its waits for a model.
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    Column("waits", SmallInteger, nullable=False, server_default="0"),
    # Number of the lane's events when the run began.
    Column("accepted_seq", BigInteger, nullable=False),
    Column("steps", Integer, nullable=False, server_default="0"),
    # Steps whose answer could not be parsed.
    Column("malformed", SmallInteger, nullable=False, server_default="0"),
    # Suggestions stored, and proposals that a check refused.
    Column("suggested", Integer, nullable=False, server_default="0"),
    Column("dropped", Integer, nullable=False, server_default="0"),
    Column("max_suggestions", Integer, nullable=False),
    Column("max_tokens", Integer, nullable=False),
    Column("model", Text, nullable=False, server_default=""),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("prompt_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False, server_default="0"),
    Column("cost_usd", Float),
    Column("code", Text),
    Column("note", Text),
    now("created_at"),
    time("completed_at"),
    CheckConstraint("origin IN ('request', 'schedule')", name="origin"),
    CheckConstraint(
        "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')", name="state"
    ),
    CheckConstraint(
        "(state IN ('QUEUED', 'RUNNING')) = (completed_at IS NULL) "
        "AND (completed_at IS NULL) = (due_at IS NOT NULL)",
        name="completed",
    ),
    partial("uq_curator_runs_open", "lane_id", unique=True, where="completed_at IS NULL"),
    Index("ix_curator_runs_project", "project_id", text("created_at DESC"), "id"),
    Index("ix_curator_runs_lane", "lane_id", text("created_at DESC")),
    partial("ix_curator_runs_due", "due_at", where="due_at IS NOT NULL"),
    partial("ix_curator_runs_open", "project_id", "due_at", where="due_at IS NOT NULL"),
)

curator_steps = Table(
    "curator_steps",
    metadata,
    Column("run_id", ForeignKey("curator_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("lane_id", Uuid, nullable=False, index=True),
    # The memories that the step is about, and all that the model was shown: [{id, version}].
    Column("centres", ARRAY(Uuid), nullable=False),
    Column("shown", JSONB, nullable=False),
    # The model's proposals. NULL: they were malformed.
    Column("answer", JSONB(none_as_null=True)),
    # Time at which its suggestions were stored.
    time("acted_at"),
)
