"""user_tokens: access of a user to their own memories; origins that may call the API"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pipeline.ledger.migrations.online import add_index, drop_index

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "user_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.func.gen_random_uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("rights", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_user_tokens_key_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_user_tokens_project_id")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_user_tokens")),
        sa.UniqueConstraint("id", name=op.f("uq_user_tokens_id")),
        if_not_exists=True,
    )
    for column in ("key_id", "expires_at"):
        op.create_index(
            op.f(f"ix_user_tokens_{column}"), "user_tokens", [column], if_not_exists=True
        )
    op.create_index(
        "ix_user_tokens_user", "user_tokens", ["project_id", "user_id"], if_not_exists=True
    )
    add_index(
        "ix_projects_origins",
        "projects",
        [sa.text("(settings -> 'allowed_origins')")],
        where="settings ? 'allowed_origins'",
        postgresql_using="gin",
    )


def downgrade() -> None:
    drop_index("ix_projects_origins", "projects")
    op.drop_table("user_tokens")
