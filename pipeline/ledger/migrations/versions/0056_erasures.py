"""erasures: epochs of lanes, sources of answers, and indexes by which an erasure finds its rows"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

OWNERS_NAMED = """CREATE FUNCTION owners_named(project_id uuid, options jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY(
    SELECT project_id || '/' || kind || '/' || (value #>> '{}') FROM (
        SELECT 'user', jsonb_path_query(options, '$.**.user_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'agent', jsonb_path_query(options, '$.**.agent_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'app', jsonb_path_query(options, '$.**.app_id.** ? (@.type() == "string")')
        UNION ALL
        SELECT 'run', jsonb_path_query(options, '$.**.run_id.** ? (@.type() == "string")')
    ) named (kind, value))
$$"""
# Answers of the release before name no sources. Those of a user's scope were made of that user's
# lanes; any other may have been made of every lane: the project's id stands for all of them.
SOURCES_OF_EARLIER = """INSERT INTO answer_sources (lane_id, batch_id)
    SELECT DISTINCT coalesce(source.id, e.project_id), e.batch_id
    FROM events e
    JOIN lanes own ON own.id = e.lane_id
    JOIN stage_runs r ON r.batch_id = e.batch_id AND r.output IS NOT NULL
    LEFT JOIN lanes source ON source.project_id = own.project_id AND source.user_id = own.user_id
    WHERE e.event_type IN ('EXPORT', 'SUMMARY')"""


def upgrade() -> None:
    op.add_column(
        "lanes", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.create_table(
        "answer_sources",
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("lane_id", "batch_id", name=op.f("pk_answer_sources")),
    )
    op.create_index("ix_answer_sources_batch_id", "answer_sources", ["batch_id"])
    op.execute(SOURCES_OF_EARLIER)
    op.execute(OWNERS_NAMED)
    op.create_index(
        "ix_events_owners_named",
        "events",
        [sa.text("owners_named(project_id, options)")],
        postgresql_using="gin",
        postgresql_where=sa.text("event_type <> 'ADD' AND event_type <> 'DRY_RUN'"),
    )
    op.create_index("ix_idempotency_keys_event_id", "idempotency_keys", ["event_id"])
    op.add_column(
        "erasures",
        sa.Column("of_session", sa.Boolean(), nullable=False, server_default="false"),
    )
    op.add_column("erasures", sa.Column("owner_hashes", postgresql.ARRAY(sa.BigInteger())))
    op.drop_index("ix_erasures_due", "erasures")
    op.create_index(
        "ix_erasures_due",
        "erasures",
        ["of_session", "due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_erasures_due", "erasures")
    op.create_index(
        "ix_erasures_due",
        "erasures",
        ["due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.drop_column("erasures", "owner_hashes")
    op.drop_column("erasures", "of_session")
    op.drop_index("ix_idempotency_keys_event_id", "idempotency_keys")
    op.drop_index("ix_events_owners_named", "events")
    op.execute("DROP FUNCTION owners_named(uuid, jsonb)")
    op.drop_table("answer_sources")
    op.drop_column("lanes", "epoch")
