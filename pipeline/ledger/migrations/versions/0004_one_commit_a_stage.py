"""one commit a stage"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX uq_memories_active_text")
    op.execute("""
        ALTER TABLE memories ADD CONSTRAINT uq_memories_active_text
        EXCLUDE USING btree (lane_id WITH =, text_hash WITH =) WHERE (state = 'ACTIVE')
        DEFERRABLE INITIALLY DEFERRED
    """)
    # To settle is no stage any more: the last one that left an output goes on from there.
    op.execute("""
        UPDATE lanes SET stage = (
            SELECT r.stage FROM stage_runs r WHERE r.batch_id = lanes.batch_id
            ORDER BY r.finished_at DESC LIMIT 1
        )
        WHERE stage = 'settle'
    """)


def downgrade() -> None:
    op.execute("ALTER TABLE memories DROP CONSTRAINT uq_memories_active_text")
    op.execute("""
        CREATE UNIQUE INDEX uq_memories_active_text ON memories (lane_id, text_hash)
        WHERE state = 'ACTIVE'
    """)
