"""graph: plain names, roles and merges of entities, sources of relations, receipts of the graph"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pipeline.ledger.migrations.online import add_index, back_fill

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

COLUMNS = (
    ("entities", "plain_name", "text"),
    ("entities", "qualifier", "text"),
    ("entities", "mentioned_at", "timestamptz"),
    ("entities", "merged_into", "uuid"),
    ("entities", "root_id", "uuid"),
    ("entities", "merge_reason", "text"),
    ("entities", "merged_at", "timestamptz"),
    ("entities", "mentions", "integer NOT NULL DEFAULT 1"),
    ("relations", "message_ordinal", "smallint"),
    ("relations", "memory_id", "uuid"),
    ("projects", "graph_types", "jsonb"),
    ("projects", "enable_graph", "boolean"),
)
PLAIN = sa.text("coalesce(plain_name, name_key)")
INDEXES: tuple[tuple[str, str, list[str | sa.TextClause], str | None], ...] = (
    ("ix_entities_plain", "entities", ["lane_id", PLAIN], None),
    ("ix_entities_root", "entities", ["root_id"], "root_id IS NOT NULL"),
    ("ix_relations_source", "relations", ["source_id"], None),
    ("ix_relations_destination", "relations", ["destination_id"], None),
    ("ix_relations_memory", "relations", ["memory_id"], "memory_id IS NOT NULL"),
    ("ix_relations_names", "relations", ["project_id", "relation", "lane_id"], None),
)


def upgrade() -> None:
    # The steps at the end commit by themselves: all others may run again.
    for table, name, kind in COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} {kind}")
    op.create_table(
        "graph_receipts",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("relation_id", sa.Uuid()),
        sa.Column("memory_id", sa.Uuid()),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message_ordinal", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", "ordinal", name=op.f("pk_graph_receipts")),
        if_not_exists=True,
    )
    # Names of earlier releases, as far as SQL can bring them into the form that is compared.
    plain = "btrim(regexp_replace(name_key, '[^[:alnum:]]+', ' ', 'g'))"
    values = f"plain_name = coalesce(nullif({plain}, ''), name_key)"
    back_fill("entities", values, where="plain_name IS NULL")
    for name, table, columns, where in INDEXES:
        add_index(name, table, columns, where=where)


def downgrade() -> None:
    op.drop_table("graph_receipts")
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table)
    for table, name, _ in reversed(COLUMNS):
        op.drop_column(table, name)
