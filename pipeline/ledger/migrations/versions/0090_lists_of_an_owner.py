"""lists of an owner: indexes of the conflicts, suggestions and changes of a lane by their time"""

from __future__ import annotations

import sqlalchemy as sa

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0090"
down_revision = "0089"

NEWEST: list[str | sa.TextClause] = [sa.text("created_at DESC"), "id"]
SHOWN = sa.text("shown_state(state, outdated)")
INDEXES: dict[str, tuple[str, list[str | sa.TextClause], str | None]] = {
    "ix_conflicts_lane": ("conflicts", ["lane_id", *NEWEST], None),
    "ix_conflicts_lane_open": ("conflicts", ["lane_id", *NEWEST], "open_until IS NOT NULL"),
    "ix_conflicts_lane_resolved": ("conflicts", ["lane_id", *NEWEST], "open_until IS NULL"),
    "ix_suggestions_lane": ("suggestions", ["lane_id", *NEWEST], None),
    "ix_suggestions_lane_shown": ("suggestions", ["lane_id", "kind", SHOWN, *NEWEST], None),
    "ix_memories_changed": (
        "memories",
        ["lane_id", sa.text("coalesce(stored_at, updated_at) DESC")],
        None,
    ),
}
# The indexes of a lane alone, in place of which the new ones stand.
REPLACED = {"ix_conflicts_lane_id": "conflicts", "ix_memories_lane": "memories"}


def upgrade() -> None:
    for name, (table, columns, where) in INDEXES.items():
        add_index(name, table, columns, where=where)
    for name, table in REPLACED.items():
        drop_index(name, table)


def downgrade() -> None:
    for name, table in REPLACED.items():
        add_index(name, table, ["lane_id"])
    for name, (table, _, _) in INDEXES.items():
        drop_index(name, table)
