"""console: the audit log, saved views, samples of the queue, and of searches by memory"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None


def _time(name: str, *, now: bool = False) -> sa.Column[object]:
    default = sa.func.now() if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=False)


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        _time("at", now=True),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("token_id", sa.Uuid()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Uuid()),
        sa.Column("status", sa.SmallInteger()),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_audit_entries")),
    )
    op.create_index(op.f("ix_audit_entries_at"), "audit_entries", ["at"])
    op.create_table(
        "saved_views",
        sa.Column("id", sa.Uuid(), server_default=sa.func.gen_random_uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("query", postgresql.JSONB(), nullable=False),
        _time("created_at", now=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_saved_views_project_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_views")),
    )
    op.create_index(op.f("ix_saved_views_project_id"), "saved_views", ["project_id"])
    op.create_table(
        "queue_samples",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        _time("minute"),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("accepted", "succeeded", "failed", "searches", "memories")
        ),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("pending", "running")),
        *(sa.Column(name, sa.Double(), nullable=False) for name in ("ready_s", "waiting_s")),
        sa.PrimaryKeyConstraint("project_id", "minute", name=op.f("pk_queue_samples")),
    )
    op.create_index("ix_queue_samples_minute", "queue_samples", ["minute"])
    op.create_table(
        "memory_reads",
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        _time("at"),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.id"], name=op.f("fk_memory_reads_memory_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("memory_id", "id", name=op.f("pk_memory_reads")),
    )
    op.create_index(op.f("ix_memory_reads_at"), "memory_reads", ["at"])


def downgrade() -> None:
    for table in ("memory_reads", "queue_samples", "saved_views", "audit_entries"):
        op.drop_table(table)
