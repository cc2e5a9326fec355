"""lanes of an owner: indexes of the newest and of the busy ones, in place of those of all"""

from __future__ import annotations

import sqlalchemy as sa

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0078"
down_revision = "0077"

# Kinds of owners, and the names of the indexes before.
BEFORE = {
    "user": "ix_lanes_owner",
    "agent": "ix_lanes_agent",
    "app": "ix_lanes_app",
    "run": "ix_lanes_run",
}


def upgrade() -> None:
    for kind, before in BEFORE.items():
        owner: list[str | sa.TextClause] = ["project_id", f"{kind}_id"]
        newest = [*owner, sa.text("created_at DESC"), "id"]
        add_index(f"ix_lanes_{kind}_newest", "lanes", newest, where=_where(kind))
        busy = _where(kind, "due_at IS NOT NULL")
        add_index(f"ix_lanes_{kind}_busy", "lanes", owner, where=busy)
        drop_index(before, "lanes")


def downgrade() -> None:
    for kind, before in BEFORE.items():
        add_index(before, "lanes", ["project_id", f"{kind}_id"], where=_where(kind))
        drop_index(f"ix_lanes_{kind}_busy", "lanes")
        drop_index(f"ix_lanes_{kind}_newest", "lanes")


def _where(kind: str, *conditions: str) -> str | None:
    """Condition of a partial index: most lanes have a user, few have the other ids."""
    named = [] if kind == "user" else [f"{kind}_id IS NOT NULL"]
    return " AND ".join([*named, *conditions]) or None
