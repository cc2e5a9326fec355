"""order: messages without terms, due lanes of the curator, project deletions, bounded reads"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, back_fill

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
INDEXES: tuple[tuple[str, str, list[str | sa.TextClause], str | None], ...] = (
    ("ix_messages_uncut", "messages", ["lane_id", "seq"], "terms IS NULL"),
    (
        "ix_entities_name",
        "entities",
        [
            "project_id",
            sa.text("coalesce(plain_name, name_key)"),
            sa.text("mentioned_at DESC NULLS LAST"),
        ],
        None,
    ),
    (
        "ix_events_code",
        "events",
        ["project_id", "failure_code", "created_at"],
        "failure_code IS NOT NULL",
    ),
    (
        "ix_events_graph",
        "events",
        ["project_id", "graph_status", "created_at"],
        "graph_status IN ('FAILED', 'PARTIAL')",
    ),
    (
        "ix_lanes_curation",
        "lanes",
        ["project_id", "next_curation_at"],
        "next_curation_at IS NOT NULL",
    ),
    ("ix_curator_runs_open", "curator_runs", ["project_id", "due_at"], "due_at IS NOT NULL"),
    ("ix_projects_curator", "projects", ["id"], "curator IS NOT NULL"),
    ("ix_relations_lane", "relations", ["lane_id"], None),
    ("ix_relations_feed", "relations", ["project_id", sa.text("valid_from DESC"), "id"], None),
)


def upgrade() -> None:
    op.alter_column("messages", "terms", nullable=True)
    op.add_column("projects", sa.Column("deleting_at", TIME), if_not_exists=True)
    op.add_column("lanes", sa.Column("next_curation_at", TIME), if_not_exists=True)
    op.add_column("summary_states", sa.Column("claimed_until", TIME), if_not_exists=True)
    hinted: sa.Column[bool] = sa.Column("hinted", sa.Boolean(), nullable=False, server_default="false")
    op.add_column("curator_runs", hinted, if_not_exists=True)
    back_fill("lanes", "next_curation_at = now()", where="next_curation_at IS NULL")
    for name, table, columns, where in INDEXES:
        add_index(name, table, columns, where=where)


def downgrade() -> None:
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table)
    op.drop_column("summary_states", "claimed_until")
    op.drop_column("curator_runs", "hinted")
    op.drop_column("lanes", "next_curation_at")
    op.drop_column("projects", "deleting_at")
    op.execute("UPDATE messages SET terms = '{}' WHERE terms IS NULL")
    op.alter_column("messages", "terms", nullable=False)
