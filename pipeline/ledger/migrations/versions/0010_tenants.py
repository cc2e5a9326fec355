"""tenants"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("operator", sa.Boolean(), server_default="false", nullable=False),
        _now("created_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organizations")),
    )
    # The oldest is the one the server was started with.
    op.execute("""
        INSERT INTO organizations (id, name, operator, created_at)
        SELECT DISTINCT ON (organization_id) organization_id, name,
               created_at = min(created_at) OVER (), created_at
        FROM projects ORDER BY organization_id, created_at
    """)
    op.create_foreign_key(
        op.f("fk_projects_organization_id"),
        "projects",
        "organizations",
        ["organization_id"],
        ["id"],
    )
    op.create_index(op.f("ix_projects_organization_id"), "projects", ["organization_id"])
    op.add_column("projects", sa.Column("description", sa.Text()))
    op.add_column(
        "projects",
        sa.Column("settings", postgresql.JSONB(), server_default="{}", nullable=False),
    )
    op.add_column("projects", _now("updated_at"))
    op.create_table(
        "members",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        _now("created_at"),
        sa.CheckConstraint("role IN ('READER', 'OWNER')", name=op.f("ck_members_role")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_members_project_id"),
        sa.PrimaryKeyConstraint("project_id", "email", name=op.f("pk_members")),
    )
    op.add_column(
        "api_keys",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
    )
    op.create_unique_constraint(op.f("uq_api_keys_id"), "api_keys", ["id"])
    op.create_index(op.f("ix_api_keys_project_id"), "api_keys", ["project_id"])
    op.add_column("api_keys", sa.Column("name", sa.Text(), server_default="", nullable=False))
    # Keys that were made before there were scopes keep all they could do.
    op.add_column("api_keys", sa.Column("scope", sa.Text(), server_default="admin", nullable=False))
    op.alter_column("api_keys", "scope", server_default=None)
    op.create_check_constraint(
        op.f("ck_api_keys_scope"), "api_keys", "scope IN ('read', 'write', 'admin')"
    )
    op.add_column("api_keys", sa.Column("member", sa.Text()))
    op.add_column("api_keys", sa.Column("expires_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    for name in ("expires_at", "member", "scope", "name", "id"):
        op.drop_column("api_keys", name)
    op.drop_index(op.f("ix_api_keys_project_id"), "api_keys")
    op.drop_table("members")
    for name in ("updated_at", "settings", "description"):
        op.drop_column("projects", name)
    op.drop_index(op.f("ix_projects_organization_id"), "projects")
    op.drop_constraint(op.f("fk_projects_organization_id"), "projects")
    op.drop_table("organizations")


def _now(name: str) -> sa.Column[object]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )
