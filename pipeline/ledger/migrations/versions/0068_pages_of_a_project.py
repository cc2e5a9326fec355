"""pages of a project: indexes for reads that do not name a user"""

from __future__ import annotations

from sqlalchemy import text

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_index(
        "ix_books_owners",
        "books",
        ["project_id", "kind", text("since DESC"), "owner"],
        where="owner <> '' AND amount > 0",
    )
    add_index(
        "ix_owners_newest", "owners", ["project_id", "kind", text("created_at DESC"), "id"]
    )
    add_index(
        "ix_suggestions_state",
        "suggestions",
        ["project_id", "state", text("created_at DESC"), "id"],
    )
    add_index("ix_usage_daily_users", "usage_daily", ["day"], where="user_id <> ''")
    add_index("ix_past_states_lane", "past_states", ["lane_id", "replaced_at"])


def downgrade() -> None:
    drop_index("ix_past_states_lane", "past_states")
    drop_index("ix_usage_daily_users", "usage_daily")
    drop_index("ix_suggestions_state", "suggestions")
    drop_index("ix_owners_newest", "owners")
    drop_index("ix_books_owners", "books")
