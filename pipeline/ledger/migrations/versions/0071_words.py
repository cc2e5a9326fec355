"""words: an inverted index of the terms of memories"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0071"
down_revision = "0070"
branch_labels = None
depends_on = None

WORD_KEYS = """CREATE OR REPLACE FUNCTION word_keys(
    project_id uuid, lane_id uuid,
    user_id text, agent_id text, app_id text, run_id text, terms text[]
) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT array_agg(hashtextextended(key, seed)) FROM (
    SELECT DISTINCT 'term/' || term AS key FROM unnest(terms) AS t (term)
    UNION ALL
    SELECT key FROM unnest(ARRAY[
        'lane/' || lane_id, 'user_id/' || user_id, 'agent_id/' || agent_id, 'app_id/' || app_id,
        'run_id/' || run_id
    ]) AS o (key) WHERE key IS NOT NULL
) keys, hashtextextended(project_id::text, 0) AS seed
$$"""


def upgrade() -> None:
    op.execute(WORD_KEYS)
    add_index(
        "ix_memories_words",
        "memories",
        [sa.text("word_keys(project_id, lane_id, user_id, agent_id, app_id, run_id, terms)")],
        where="state = 'ACTIVE'",
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )


def downgrade() -> None:
    drop_index("ix_memories_words", "memories")
    op.execute("DROP FUNCTION word_keys(uuid, uuid, text, text, text, text, text[])")
