"""curator: its runs with their saved answers, and the schedule of a project"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

STATES = "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')"
COMPLETED = (
    "(state IN ('QUEUED', 'RUNNING')) = (completed_at IS NULL) "
    "AND (completed_at IS NULL) = (due_at IS NOT NULL)"
)


def _time(name: str, **options: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **options)  # type: ignore[arg-type]


def _count(name: str, kind: type[sa.Integer] = sa.Integer) -> sa.Column[int]:
    return sa.Column(name, kind(), nullable=False, server_default="0")


def upgrade() -> None:
    op.create_table(
        "curator_runs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, server_default="QUEUED"),
        _count("fence", sa.BigInteger),
        _time("due_at"),
        _count("attempts", sa.SmallInteger),
        _count("waits", sa.SmallInteger),
        sa.Column("accepted_seq", sa.BigInteger(), nullable=False),
        _count("steps"),
        _count("malformed", sa.SmallInteger),
        _count("suggested"),
        _count("dropped"),
        sa.Column("max_suggestions", sa.Integer(), nullable=False),
        sa.Column("max_tokens", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False, server_default=""),
        _count("calls"),
        _count("prompt_tokens"),
        _count("completion_tokens"),
        sa.Column("cost_usd", sa.Float()),
        sa.Column("code", sa.Text()),
        sa.Column("note", sa.Text()),
        _time("created_at", nullable=False, server_default=sa.func.now()),
        _time("completed_at"),
        sa.CheckConstraint("origin IN ('request', 'schedule')", name=op.f("ck_curator_runs_origin")),
        sa.CheckConstraint(STATES, name=op.f("ck_curator_runs_state")),
        sa.CheckConstraint(COMPLETED, name=op.f("ck_curator_runs_completed")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_curator_runs")),
    )
    newest = sa.text("created_at DESC")
    op.create_index(
        "uq_curator_runs_open",
        "curator_runs",
        ["lane_id"],
        unique=True,
        postgresql_where=sa.text("completed_at IS NULL"),
    )
    op.create_index("ix_curator_runs_project", "curator_runs", ["project_id", newest, "id"])
    op.create_index("ix_curator_runs_lane", "curator_runs", ["lane_id", newest])
    op.create_index(
        "ix_curator_runs_due",
        "curator_runs",
        ["due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "curator_steps",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("centres", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("shown", postgresql.JSONB(), nullable=False),
        sa.Column("answer", postgresql.JSONB()),
        _time("acted_at"),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["curator_runs.id"],
            name=op.f("fk_curator_steps_run_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "ordinal", name=op.f("pk_curator_steps")),
    )
    op.create_index(op.f("ix_curator_steps_lane_id"), "curator_steps", ["lane_id"])
    op.add_column("suggestions", sa.Column("run_id", sa.Uuid()))
    op.create_index(
        "ix_suggestions_run",
        "suggestions",
        ["run_id"],
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.add_column("projects", sa.Column("curator", postgresql.JSONB()))


def downgrade() -> None:
    op.drop_column("projects", "curator")
    op.drop_index("ix_suggestions_run", "suggestions")
    op.drop_column("suggestions", "run_id")
    op.drop_table("curator_steps")
    op.drop_table("curator_runs")
