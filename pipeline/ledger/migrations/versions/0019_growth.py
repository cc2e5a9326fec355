"""growth: indexes for what read all rows of a project, and vacuum before the dead rows are many

On a large ledger build the indexes beforehand with CREATE INDEX CONCURRENTLY and the names below:
those that exist are not built again.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

OWNERS = ("agent", "app", "run")
# Tables whose rows are updated or deleted all the time. The default waits for a fifth of all rows.
BUSY = (
    "lanes",
    "events",
    "memories",
    "turn_vectors",
    "stage_runs",
    "webhook_deliveries",
    "books",
    "book_entries",
)
VACUUM = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02"


def indexes() -> Iterator[tuple[str, str, list[str], str | None]]:
    for kind in OWNERS:
        named = f"{kind}_id IS NOT NULL"
        yield f"ix_lanes_{kind}", "lanes", ["project_id", f"{kind}_id"], named
        columns = ["project_id", f"{kind}_id", "created_at"]
        yield f"ix_memories_{kind}", "memories", columns, named
    yield "ix_memories_owed_embedder", "memories", ["embedder"], "owed"
    yield "ix_turn_vectors_owed_age", "turn_vectors", ["accepted_at"], "owed"
    yield "ix_turn_vectors_owed_embedder", "turn_vectors", ["embedder"], "owed"
    yield "ix_events_failed", "events", ["project_id", "created_at"], "status = 'FAILED'::text"
    columns = ["project_id", "created_at DESC", "memory_id", "version DESC"]
    yield "ix_memory_history_feed", "memory_history", columns, None


def upgrade() -> None:
    for name, table, columns, where in indexes():
        op.create_index(
            name,
            table,
            [sa.text(column) for column in columns],
            postgresql_where=sa.text(where) if where else None,
            if_not_exists=True,
        )
    for table in BUSY:
        op.execute(f"ALTER TABLE {table} SET ({VACUUM})")
    # Room for the next version of a row beside it: a lane is updated a dozen times an event.
    op.execute("ALTER TABLE lanes SET (fillfactor = 70)")


def downgrade() -> None:
    op.execute("ALTER TABLE lanes RESET (fillfactor)")
    for table in BUSY:
        op.execute(
            f"ALTER TABLE {table} RESET "
            "(autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor)"
        )
    for name, table, _, _ in indexes():
        op.drop_index(name, table)
