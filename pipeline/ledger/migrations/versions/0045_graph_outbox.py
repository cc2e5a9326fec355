"""graph outbox: changes of entities and relations for a graph server that mirrors them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

MIRRORED = "name, plain_name, kind, qualifier, merged_into, root_id, project_id, lane_id"


def _of(row: str) -> str:
    return ", ".join(f"{row}.{column.strip()}" for column in MIRRORED.split(","))


# One statement-level trigger for each operation. Without a registered server it looks into an empty
# table and ends. What is gone is queued before what replaces it.
FUNCTIONS = {
    "queue_entities_inserted": """INSERT INTO graph_outbox (project_id, lane_id, entity_id)
        SELECT project_id, lane_id, id FROM after;""",
    "queue_entities_updated": f"""INSERT INTO graph_outbox (project_id, lane_id, entity_id)
        SELECT a.project_id, a.lane_id, a.id FROM after a JOIN before b USING (id)
        WHERE ({_of("a")}) IS DISTINCT FROM ({_of("b")});""",
    "queue_entities_deleted": """INSERT INTO graph_outbox (project_id, lane_id, entity_id, gone)
        SELECT project_id, lane_id, id, true FROM before;""",
    "queue_relations_inserted": """INSERT INTO graph_outbox (project_id, lane_id, relation_id)
        SELECT project_id, lane_id, id FROM after;""",
    "queue_relations_updated": """INSERT INTO graph_outbox
            (project_id, lane_id, relation_id, source_id, gone)
        SELECT b.project_id, b.lane_id, b.id, b.source_id, true
        FROM after a JOIN before b USING (id)
        WHERE (a.source_id, a.destination_id) <> (b.source_id, b.destination_id);
        INSERT INTO graph_outbox (project_id, lane_id, relation_id)
        SELECT project_id, lane_id, id FROM after;""",
    "queue_relations_deleted": """INSERT INTO graph_outbox
            (project_id, lane_id, relation_id, source_id, gone)
        SELECT project_id, lane_id, id, source_id, true FROM before;""",
}
TRIGGERS = tuple(
    f"queued_{done} AFTER {operation} ON {table} REFERENCING {seen}"
    f" FOR EACH STATEMENT EXECUTE FUNCTION queue_{table}_{done}()"
    for table in ("entities", "relations")
    for done, operation, seen in (
        ("inserted", "INSERT", "NEW TABLE AS after"),
        ("updated", "UPDATE", "OLD TABLE AS before NEW TABLE AS after"),
        ("deleted", "DELETE", "OLD TABLE AS before"),
    )
)


def upgrade() -> None:
    op.create_table(
        "graph_mirrors",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("filled_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_graph_mirrors")),
    )
    op.create_table(
        "graph_outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("lane_id", sa.Uuid(), nullable=False),
        sa.Column("entity_id", sa.Uuid()),
        sa.Column("relation_id", sa.Uuid()),
        sa.Column("source_id", sa.Uuid()),
        sa.Column("gone", sa.Boolean(), nullable=False, server_default="false"),
        sa.Column(
            "queued_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_graph_outbox")),
    )
    op.create_index("ix_graph_outbox_lane", "graph_outbox", ["project_id", "lane_id"])
    for name, body in FUNCTIONS.items():
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF EXISTS (SELECT FROM graph_mirrors) THEN {body} END IF; RETURN NULL; END $$"
        )
    for trigger in TRIGGERS:
        op.execute(f"CREATE TRIGGER {trigger}")


def downgrade() -> None:
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name} CASCADE")
    op.drop_table("graph_outbox")
    op.drop_table("graph_mirrors")
