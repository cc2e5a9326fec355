"""graph: plain names, roles and merges of entities, sources of relations, receipts of the graph"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

Columns = tuple[tuple[str, sa.types.TypeEngine[Any]], ...]
ENTITY_COLUMNS: Columns = (
    ("plain_name", sa.Text()),
    ("qualifier", sa.Text()),
    ("mentioned_at", sa.DateTime(timezone=True)),
    ("merged_into", sa.Uuid()),
    ("root_id", sa.Uuid()),
    ("merge_reason", sa.Text()),
    ("merged_at", sa.DateTime(timezone=True)),
)
RELATION_COLUMNS: Columns = (("message_ordinal", sa.SmallInteger()), ("memory_id", sa.Uuid()))
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
    for name, kind in ENTITY_COLUMNS:
        op.add_column("entities", sa.Column(name, kind))
    op.add_column(
        "entities", sa.Column("mentions", sa.Integer(), nullable=False, server_default="1")
    )
    for name, kind in RELATION_COLUMNS:
        op.add_column("relations", sa.Column(name, kind))
    # Names of earlier releases, as far as SQL can bring them into the form that is compared.
    op.execute(
        "UPDATE entities SET plain_name = coalesce(nullif(btrim(regexp_replace("
        "name_key, '[^[:alnum:]]+', ' ', 'g')), ''), name_key)"
    )
    for name, table, columns, where in INDEXES:
        op.create_index(name, table, columns, postgresql_where=where and sa.text(where))
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
    )
    op.add_column("projects", sa.Column("graph_types", postgresql.JSONB()))
    op.add_column("projects", sa.Column("enable_graph", sa.Boolean()))


def downgrade() -> None:
    for name in ("enable_graph", "graph_types"):
        op.drop_column("projects", name)
    op.drop_table("graph_receipts")
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table)
    for name, _ in RELATION_COLUMNS:
        op.drop_column("relations", name)
    for name in ("mentions", *(name for name, _ in ENTITY_COLUMNS)):
        op.drop_column("entities", name)
