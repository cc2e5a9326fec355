"""cardinality: whether the attribute of a memory has one value at a time, and a project's own list"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None

# The columns of `memories` that a past state kept before this revision.
BEFORE = (
    *("project_id", "lane_id", "user_id", "agent_id", "app_id", "run_id", "text", "terms"),
    *("metadata", "categories", "attributed_to", "state", "immutable", "expiration_date"),
    *("embedding", "embedder", "version", "event_id", "message_ordinal", "said_at", "valid_from"),
    *("kind", "memory_type", "subject", "attribute", "slot", "speaker", "confidence"),
    *("superseded_by", "appended", "replaced_by", "created_at", "updated_at"),
    *("pinned", "edited_at"),
)


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
        op.add_column(table, sa.Column("cardinality", sa.Text()))
    op.add_column("projects", sa.Column("custom_attributes", postgresql.JSONB()))
    # No row has the column yet, so the index is built at once.
    op.create_index(
        "ix_memories_cardinality",
        "memories",
        ["lane_id", "attribute", "cardinality"],
        postgresql_where=sa.text("cardinality IS NOT NULL AND state = 'ACTIVE'"),
    )
    op.execute(_keep((*BEFORE, "cardinality")))


def downgrade() -> None:
    op.execute(_keep(BEFORE))
    op.drop_index("ix_memories_cardinality", "memories")
    op.drop_column("projects", "custom_attributes")
    for table in ("past_states", "memories"):
        op.drop_column(table, "cardinality")
