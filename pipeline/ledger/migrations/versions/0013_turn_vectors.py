"""turn vectors: search turns by meaning"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "turn_vectors",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("embedding", sa.LargeBinary()),
        sa.Column("embedder", sa.Text()),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("projected_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("owed", sa.Boolean(), sa.Computed("projected_version <> version", persisted=True)),
        sa.Column(
            "accepted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id", "ordinal", name=op.f("pk_turn_vectors")),
        sa.UniqueConstraint("id", name=op.f("uq_turn_vectors_id")),
    )
    # Existing turns get a row as well. New turns are written to the index before them.
    op.execute("""
        INSERT INTO turn_vectors (event_id, ordinal, lane_id, accepted_at)
        SELECT e.id, m.ordinal, e.lane_id, e.created_at
        FROM events e JOIN messages m ON m.lane_id = e.lane_id AND m.seq = e.seq
        WHERE e.event_type = 'ADD' AND e.copy_of IS NULL
          AND e.options ->> 'infer' IS DISTINCT FROM 'false'
          AND m.role <> 'system' AND m.content ~ '[^[:space:]]'
    """)
    op.create_index(
        "ix_turn_vectors_owed",
        "turn_vectors",
        ["lane_id", "accepted_at"],
        postgresql_where=sa.text("owed"),
    )


def downgrade() -> None:
    op.drop_table("turn_vectors")
