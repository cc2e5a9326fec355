"""shown rows of an owner: indexes that leave out superseded memories and temporary runs"""

from __future__ import annotations

import sqlalchemy as sa

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0081"
down_revision = "0080"

Columns = list[str | sa.TextClause]
KINDS = ("user", "agent", "app")
LATEST: Columns = [sa.text("accepted_at DESC"), "id"]


def upgrade() -> None:
    for kind in KINDS:
        owner: Columns = ["project_id", f"{kind}_id"]
        memories: Columns = [*owner, "state", "temporary", "created_at"]
        add_index(f"ix_memories_{kind}_shown", "memories", memories, where=_where(kind))
        drop_index(f"ix_memories_{kind}", "memories")
        lanes: Columns = [*owner, "temporary", *LATEST]
        add_index(f"ix_lanes_{kind}_shown", "lanes", lanes, where=_where(kind))
        drop_index(f"ix_lanes_{kind}_latest", "lanes")


def downgrade() -> None:
    for kind in KINDS:
        owner: Columns = ["project_id", f"{kind}_id"]
        add_index(f"ix_memories_{kind}", "memories", [*owner, "created_at"], where=_where(kind))
        drop_index(f"ix_memories_{kind}_shown", "memories")
        add_index(f"ix_lanes_{kind}_latest", "lanes", [*owner, *LATEST], where=_where(kind))
        drop_index(f"ix_lanes_{kind}_shown", "lanes")


def _where(kind: str) -> str | None:
    """Condition of a partial index: most rows have a user, few have the other ids."""
    return None if kind == "user" else f"{kind}_id IS NOT NULL"
