"""signed heads of projects, a queue of rows to seal, and entries for erasures and replays"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

KINDS = "kind IN ('event', 'receipt', 'history', 'erasure')"
ENTRY = sa.text("kind IN ('erasure', 'replay')")
STATES = "state IN ('adopting', 'starting', 'filling', 'complete', 'off')"

# Insert the row of a project with tamper evidence into the queue, in the transaction of its change.
FUNCTIONS = {
    "queue_event_to_seal": """INSERT INTO seal_queue (project_id, kind, row_id)
        SELECT id, 'event', NEW.id FROM projects WHERE id = NEW.project_id AND tamper_evidence;""",
    "queue_receipt_to_seal": """INSERT INTO seal_queue (project_id, kind, row_id, row_no)
        SELECT p.id, 'receipt', NEW.event_id, NEW.ordinal
        FROM events e JOIN projects p ON p.id = e.project_id
        WHERE e.id = NEW.event_id AND p.tamper_evidence;""",
    "queue_history_to_seal": """INSERT INTO seal_queue (project_id, kind, row_id, row_no)
        SELECT id, 'history', NEW.memory_id, NEW.version
        FROM projects WHERE id = NEW.project_id AND tamper_evidence;""",
}
TRIGGERS = (
    "seal_ended AFTER UPDATE OF completed_at ON events FOR EACH ROW"
    " WHEN (NEW.completed_at IS NOT NULL AND NEW.erased_at IS NULL"
    " AND NEW.completed_at IS DISTINCT FROM OLD.completed_at)"
    " EXECUTE FUNCTION queue_event_to_seal()",
    "seal_inserted AFTER INSERT ON events FOR EACH ROW"
    " WHEN (NEW.completed_at IS NOT NULL AND NEW.erased_at IS NULL)"
    " EXECUTE FUNCTION queue_event_to_seal()",
    "seal_adopted AFTER INSERT ON receipts FOR EACH ROW WHEN (NEW.adopted_at IS NOT NULL)"
    " EXECUTE FUNCTION queue_receipt_to_seal()",
    "seal_inserted AFTER INSERT ON memory_history FOR EACH ROW"
    " EXECUTE FUNCTION queue_history_to_seal()",
    "seal_adopted AFTER UPDATE OF project_id ON memory_history FOR EACH ROW"
    " EXECUTE FUNCTION queue_history_to_seal()",
)


def _time(name: str, **options: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **options)  # type: ignore[arg-type]


def upgrade() -> None:
    op.add_column("receipts", _time("adopted_at"))
    op.drop_constraint(op.f("ck_seals_kind"), "seals")
    op.add_column("seals", sa.Column("covers", sa.Text()))
    op.create_index("ix_seals_entries", "seals", ["lane_id"], postgresql_where=ENTRY)
    op.add_column(
        "seal_heads", sa.Column("key_id", sa.Text(), nullable=False, server_default="")
    )
    op.drop_index("ix_seal_heads_project_id", "seal_heads")
    op.create_index("ix_seal_heads_project", "seal_heads", ["project_id", "lane_id"])
    op.create_table(
        "seal_buckets",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("bucket", sa.SmallInteger(), nullable=False),
        sa.Column("lanes", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "bucket", name=op.f("pk_seal_buckets")),
    )
    op.create_table(
        "seal_projects",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        _time("since"),
        sa.Column("counter", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("lanes", sa.BigInteger(), nullable=False, server_default="0"),
        _time("sealed_until"),
        sa.Column("digest", sa.LargeBinary(), nullable=False, server_default=""),
        sa.Column("checkpoints", sa.BigInteger(), nullable=False, server_default="0"),
        _time("checkpoint_at"),
        _time("sealed_at"),
        sa.Column("key_id", sa.Text(), nullable=False, server_default=""),
        sa.Column("signature", sa.LargeBinary(), nullable=False, server_default=""),
        sa.Column("rotated_to", sa.Text(), nullable=False, server_default=""),
        sa.CheckConstraint(STATES, name=op.f("ck_seal_projects_state")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_seal_projects")),
    )
    op.create_table(
        "seal_checkpoints",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("lanes", sa.BigInteger(), nullable=False),
        _time("sealed_until"),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        _time("created_at", nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_seal_checkpoints")),
    )
    op.create_table(
        "seal_queue",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("lane_id", sa.Uuid()),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("row_no", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("covers", sa.Text()),
        sa.Column("key_id", sa.Text()),
        sa.Column("signature", sa.LargeBinary()),
        _time("queued_at", nullable=False, server_default=sa.func.now()),
        _time("due_at", nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seal_queue")),
    )
    op.create_index("ix_seal_queue_due", "seal_queue", ["project_id", "due_at"])
    op.create_index("ix_seal_queue_oldest", "seal_queue", ["project_id", "queued_at"])
    op.create_index("ix_seal_queue_entries", "seal_queue", ["lane_id"], postgresql_where=ENTRY)
    op.create_index(
        "ix_seal_queue_lanes",
        "seal_queue",
        ["project_id"],
        postgresql_where=sa.text("kind = 'lane'"),
    )
    # Not signed: the sweeper verifies the heads of the earlier release before it signs.
    op.execute(
        "INSERT INTO seal_projects (project_id, state)"
        " SELECT id, 'adopting' FROM projects WHERE tamper_evidence"
    )
    for name, body in FUNCTIONS.items():
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}"
            " RETURN NULL; END $$"
        )
    for trigger in TRIGGERS:
        op.execute(f"CREATE TRIGGER {trigger}")


def downgrade() -> None:
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name} CASCADE")
    for table in ("seal_queue", "seal_checkpoints", "seal_projects", "seal_buckets"):
        op.drop_table(table)
    op.drop_index("ix_seal_heads_project", "seal_heads")
    op.create_index("ix_seal_heads_project_id", "seal_heads", ["project_id"])
    # The earlier release knows neither the new signatures nor the new entries: it seals again.
    op.execute("TRUNCATE seals, seal_heads")
    op.execute("UPDATE projects SET sealed_until = NULL WHERE tamper_evidence")
    op.drop_column("seal_heads", "key_id")
    op.drop_index("ix_seals_entries", "seals")
    op.drop_column("seals", "covers")
    op.create_check_constraint(op.f("ck_seals_kind"), "seals", KINDS)
    op.drop_column("receipts", "adopted_at")
