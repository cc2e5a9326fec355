"""people in charge: memories that are pinned, edited or deleted by a person"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

# The columns of `memories` that a past state kept before this revision.
BEFORE = (
    *("project_id", "lane_id", "user_id", "agent_id", "app_id", "run_id", "text", "terms"),
    *("metadata", "categories", "attributed_to", "state", "immutable", "expiration_date"),
    *("embedding", "embedder", "version", "event_id", "message_ordinal", "said_at", "valid_from"),
    *("kind", "memory_type", "subject", "attribute", "slot", "speaker", "confidence"),
    *("superseded_by", "appended", "replaced_by", "created_at", "updated_at"),
)
NEW = ("pinned", "edited_at")


def _keep(names: tuple[str, ...]) -> str:
    """The trigger function that keeps these columns of a past state."""
    return f"""CREATE OR REPLACE FUNCTION keep_past_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE since timestamptz := coalesce(OLD.stored_at, OLD.updated_at);
BEGIN
    NEW.stored_at := greatest(now(), since);
    IF OLD.project_id = NEW.project_id AND since < NEW.stored_at THEN
        INSERT INTO past_states (memory_id, stored_at, replaced_at, {", ".join(names)})
        VALUES (OLD.id, since, NEW.stored_at, {", ".join(f"OLD.{name}" for name in names)});
    END IF;
    RETURN NEW; END $$"""


def upgrade() -> None:
    for table in ("memories", "past_states"):
        op.add_column(
            table, sa.Column("pinned", sa.Boolean(), nullable=False, server_default="false")
        )
        op.add_column(table, sa.Column("edited_at", sa.DateTime(timezone=True)))
    op.alter_column("past_states", "pinned", server_default=None)
    op.add_column("memories", sa.Column("forgotten_at", sa.DateTime(timezone=True)))
    op.execute(_keep(BEFORE + NEW))
    op.create_index(
        "ix_memories_forgotten",
        "memories",
        ["lane_id", "text_hash"],
        postgresql_where=sa.text("forgotten_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.execute(_keep(BEFORE))
    op.drop_index("ix_memories_forgotten", "memories")
    op.drop_column("memories", "forgotten_at")
    for table in ("past_states", "memories"):
        for name in NEW:
            op.drop_column(table, name)
