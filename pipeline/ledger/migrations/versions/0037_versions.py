"""versions: past states of memories, and who made each change

States from before are copied from the history of changes; they have no words and no vectors, so
searches do not return them.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pipeline.ledger.migrations.online import WITHIN, in_batches

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
TEXTS = postgresql.ARRAY(sa.Text())


def _kept() -> list[sa.Column[Any]]:
    """The columns of `memories` that a past state keeps."""
    return [
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text()),
        sa.Column("agent_id", sa.Text()),
        sa.Column("app_id", sa.Text()),
        sa.Column("run_id", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("terms", TEXTS, nullable=False),
        sa.Column("metadata", postgresql.JSONB(), nullable=False),
        sa.Column("categories", TEXTS, nullable=False),
        sa.Column("attributed_to", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("immutable", sa.Boolean(), nullable=False),
        sa.Column("expiration_date", sa.Date()),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.Uuid()),
        sa.Column("message_ordinal", sa.SmallInteger()),
        sa.Column("said_at", TIME, nullable=False),
        sa.Column("valid_from", TIME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("memory_type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("attribute", sa.Text()),
        sa.Column("slot", sa.Text()),
        sa.Column("speaker", sa.Text()),
        sa.Column("confidence", sa.Float()),
        sa.Column("superseded_by", sa.Uuid()),
        sa.Column("appended", sa.Boolean(), nullable=False),
        sa.Column("replaced_by", sa.Uuid()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
    ]


NAMES = [column.name for column in _kept()]

# A memory that moves to another project, from a replay to its scope, begins there: no earlier state
# of it was in that project. Of several changes in one transaction, only the last one is a state.
KEEP = f"""CREATE OR REPLACE FUNCTION keep_past_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE since timestamptz := coalesce(OLD.stored_at, OLD.updated_at);
BEGIN
    NEW.stored_at := greatest(now(), since);
    IF OLD.project_id = NEW.project_id AND since < NEW.stored_at THEN
        INSERT INTO past_states (memory_id, stored_at, replaced_at, {", ".join(NAMES)})
        VALUES (OLD.id, since, NEW.stored_at, {", ".join(f"OLD.{name}" for name in NAMES)});
    END IF;
    RETURN NEW; END $$"""
# Every change increments the version, except these: a later statement of the same, the switch to a
# replay, which moves memories or marks them as replaced.
KEPT_ON = """CREATE OR REPLACE TRIGGER past_state_kept BEFORE UPDATE ON memories FOR EACH ROW
    WHEN ((OLD.version, OLD.project_id, OLD.said_at, OLD.superseded_by, OLD.replaced_by)
        IS DISTINCT FROM
        (NEW.version, NEW.project_id, NEW.said_at, NEW.superseded_by, NEW.replaced_by))
    EXECUTE FUNCTION keep_past_state()"""
FROM_HISTORY = {
    "text": "coalesce(h.new_text, h.old_text, m.text)",
    "terms": "'{}'",
    "metadata": "h.metadata",
    "state": "CASE WHEN h.new_text IS NULL THEN 'RETIRED' ELSE 'ACTIVE' END",
    "expiration_date": "h.expiration_date",
    "embedding": "''",
    "embedder": "''",
    "version": "h.version",
    "event_id": "coalesce(h.event_id, m.event_id)",
    "message_ordinal": "coalesce(h.message_ordinal, m.message_ordinal)",
    "said_at": "coalesce(h.said_at, h.valid_from)",
    "valid_from": "h.valid_from",
    "kind": "coalesce(h.structure ->> 'kind', 'other')",
    "memory_type": "coalesce(h.structure ->> 'memory_type', 'semantic')",
    "subject": "h.structure ->> 'subject'",
    "attribute": "h.structure ->> 'attribute'",
    "slot": "CASE WHEN h.structure ->> 'attribute' = m.attribute THEN m.slot END",
    "speaker": "h.structure ->> 'speaker'",
    "confidence": "(h.structure ->> 'confidence')::float8",
    "superseded_by": "NULL::uuid",
    "replaced_by": "NULL::uuid",
    "updated_at": "h.created_at",
}
COPY = f"""INSERT INTO past_states (memory_id, stored_at, replaced_at, {", ".join(NAMES)})
    SELECT m.id, h.created_at, later.created_at,
           {", ".join(FROM_HISTORY.get(name, f"m.{name}") for name in NAMES)}
    FROM memory_history h
    JOIN memory_history later ON later.memory_id = h.memory_id AND later.version = h.version + 1
    JOIN memories m ON m.id = h.memory_id AND m.project_id = h.project_id
    WHERE h.created_at < later.created_at AND {WITHIN} AND NOT EXISTS (
        SELECT FROM past_states kept WHERE kept.memory_id = h.memory_id AND kept.version = h.version)"""


def upgrade() -> None:
    op.create_table(
        "past_states",
        sa.Column("id", sa.Uuid(), nullable=False, server_default=sa.func.gen_random_uuid()),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        *_kept(),
        sa.Column("stored_at", TIME, nullable=False),
        sa.Column("replaced_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_past_states")),
        sa.ForeignKeyConstraint(
            ["memory_id"],
            ["memories.id"],
            name=op.f("fk_past_states_memory_id"),
            ondelete="CASCADE",
        ),
        if_not_exists=True,
    )
    op.create_index("ix_past_states_memory", "past_states", ["memory_id", "replaced_at"], if_not_exists=True)
    op.create_index("ix_past_states_user", "past_states", ["project_id", "user_id", "replaced_at"], if_not_exists=True)
    op.create_index("ix_past_states_feed", "past_states", ["project_id", "replaced_at"], if_not_exists=True)
    op.create_index(
        "ix_past_states_slot",
        "past_states",
        ["lane_id", "slot"],
        postgresql_where=sa.text("slot IS NOT NULL"),
        if_not_exists=True,
    )
    for kind in ("agent", "app", "run"):
        op.create_index(
            f"ix_past_states_{kind}",
            "past_states",
            ["project_id", f"{kind}_id", "replaced_at"],
            postgresql_where=sa.text(f"{kind}_id IS NOT NULL"),
            if_not_exists=True,
        )
    op.execute("ALTER TABLE memory_history ADD COLUMN IF NOT EXISTS key_id uuid")
    op.execute("ALTER TABLE memories ADD COLUMN IF NOT EXISTS stored_at timestamptz")
    op.alter_column("memories", "stored_at", server_default=sa.func.now())
    op.execute(KEEP)
    op.execute(KEPT_ON)
    # From here on the trigger keeps every state; the copy adds those from before, beside writers.
    in_batches(COPY, "memories", alias="m")


def downgrade() -> None:
    op.execute("DROP FUNCTION keep_past_state CASCADE")
    op.drop_column("memories", "stored_at")
    op.drop_column("memory_history", "key_id")
    op.drop_table("past_states")
