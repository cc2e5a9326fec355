"""profiles: fields of users, filled from memories; a trigger counts the changes of memories"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0070"
down_revision = "0069"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
# One count for each transaction and user. Without profiles it costs a look-up of the project. An
# erasure deletes the row before: it is not inserted again.
MARK = """CREATE FUNCTION mark_profile() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this_transaction bigint := pg_current_xact_id()::text::bigint;
    of_project uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.project_id ELSE NEW.project_id END;
    of_user text := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
    on_now boolean;
BEGIN
    SELECT profile_settings @> '{"enabled": true}' INTO on_now FROM projects
    WHERE id = of_project AND profile_settings IS NOT NULL;
    IF on_now IS NULL THEN
        RETURN NULL;
    END IF;
    IF on_now AND TG_OP <> 'DELETE' THEN
        INSERT INTO profiles AS p (project_id, user_id, due_at, changed_in)
        VALUES (of_project, of_user, now(), this_transaction)
        ON CONFLICT (project_id, user_id) DO UPDATE SET
            changes = p.changes + 1, changed_in = this_transaction,
            due_at = coalesce(p.due_at, now())
        WHERE p.changed_in <> this_transaction;
    ELSE
        UPDATE profiles SET
            changes = changes + 1, changed_in = this_transaction,
            due_at = CASE WHEN on_now THEN coalesce(due_at, now()) END
        WHERE project_id = of_project AND user_id = of_user AND changed_in <> this_transaction;
    END IF;
    RETURN NULL;
END $$"""
TRIGGERS = (
    """CREATE TRIGGER profile_inserted AFTER INSERT ON memories FOR EACH ROW
    WHEN (NEW.user_id IS NOT NULL AND NEW.state = 'ACTIVE' AND NOT NEW.temporary)
    EXECUTE FUNCTION mark_profile()""",
    """CREATE TRIGGER profile_updated AFTER UPDATE ON memories FOR EACH ROW
    WHEN (NEW.user_id IS NOT NULL AND NOT NEW.temporary
        AND (OLD.text, OLD.state, OLD.project_id, OLD.superseded_by, OLD.expiration_date)
        IS DISTINCT FROM (NEW.text, NEW.state, NEW.project_id, NEW.superseded_by, NEW.expiration_date))
    EXECUTE FUNCTION mark_profile()""",
    """CREATE TRIGGER profile_deleted AFTER DELETE ON memories FOR EACH ROW
    WHEN (OLD.user_id IS NOT NULL AND NOT OLD.temporary)
    EXECUTE FUNCTION mark_profile()""",
)


def upgrade() -> None:
    op.add_column("projects", sa.Column("profile_settings", postgresql.JSONB()))
    op.create_table(
        "profiles",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.func.gen_random_uuid(), nullable=False),
        sa.Column("changes", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("read_changes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("changed_in", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("due_at", TIME),
        sa.Column("event_id", sa.Uuid()),
        sa.Column("generations", sa.Integer(), server_default="0", nullable=False),
        sa.Column("updated_at", TIME),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_profiles")),
    )
    op.create_index(
        "ix_profiles_due", "profiles", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_table(
        "profile_fields",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", postgresql.JSONB(), nullable=False),
        sa.Column("memory_ids", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("stored_at", TIME, server_default=sa.func.now(), nullable=False),
        sa.Column("replaced_at", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profile_fields")),
    )
    op.create_index(
        "ix_profile_fields_user", "profile_fields", ["project_id", "user_id", "replaced_at"]
    )
    op.create_index(
        "ix_profile_fields_memories", "profile_fields", ["memory_ids"], postgresql_using="gin"
    )
    op.create_table(
        "profile_jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("event_ids", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("created_at", TIME, server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profile_jobs")),
    )
    for column in ("project_id", "created_at"):
        op.create_index(op.f(f"ix_profile_jobs_{column}"), "profile_jobs", [column])
    op.execute(MARK)
    for trigger in TRIGGERS:
        op.execute(trigger)


def downgrade() -> None:
    op.execute("DROP FUNCTION mark_profile() CASCADE")
    for table in ("profile_jobs", "profile_fields", "profiles"):
        op.drop_table(table)
    op.drop_column("projects", "profile_settings")
