"""console_sessions: sessions of the console and one-time links"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("link", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_console_sessions_key_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_console_sessions")),
    )
    for column in ("key_id", "expires_at"):
        op.create_index(op.f(f"ix_console_sessions_{column}"), "console_sessions", [column])


def downgrade() -> None:
    op.drop_table("console_sessions")
