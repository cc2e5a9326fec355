"""temporary: a column of lanes and memories; ids of ended private runs are refused"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

TABLES = ("lanes", "memories", "past_states")
DIGEST = """CREATE FUNCTION private_run_digest(project_id uuid, run_id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT sha256(convert_to(project_id || '/' || run_id, 'UTF8'))
$$"""
# Each statement in a function reads what was committed before it began, so the second read sees a
# declaration that the lock waited for. The row lock waits for the end of a run in the same way. The
# same lock: pipeline/tenants/private_runs.
LANE = """CREATE FUNCTION enter_private_run() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    this bytea := private_run_digest(NEW.project_id, NEW.run_id);
    state text;
BEGIN
    SELECT privacy INTO state FROM private_runs
    WHERE project_id = NEW.project_id AND digest = this FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(encode(this, 'hex'), 0));
        SELECT privacy INTO state FROM private_runs
        WHERE project_id = NEW.project_id AND digest = this FOR KEY SHARE;
    END IF;
    NEW.temporary := state IS NOT DISTINCT FROM 'temporary';
    IF state IN ('incognito', 'ended') AND NEW.accepted_seq > 0 THEN
        RAISE EXCEPTION 'The run stores nothing.'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'private_run_' || state;
    END IF;
    RETURN NEW;
END $$"""
ENTERED = """CREATE TRIGGER private_run_entered BEFORE INSERT ON lanes FOR EACH ROW
    WHEN (NEW.run_id IS NOT NULL) EXECUTE FUNCTION enter_private_run()"""
MEMORY = """CREATE FUNCTION mark_temporary() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.temporary := coalesce((SELECT temporary FROM lanes WHERE id = NEW.lane_id), false);
    RETURN NEW;
END $$"""
# A trigger of each table, so that every writer, also of the release before, marks its rows.
MARKED = tuple(
    f"""CREATE TRIGGER temporary_marked BEFORE INSERT OR UPDATE OF lane_id ON {table}
    FOR EACH ROW WHEN (NEW.run_id IS NOT NULL) EXECUTE FUNCTION mark_temporary()"""
    for table in ("memories", "past_states")
)
OF_EARLIER = (
    """UPDATE lanes SET temporary = true FROM private_runs p
    WHERE p.privacy = 'temporary' AND lanes.project_id = p.project_id AND lanes.run_id = p.run_id""",
    "UPDATE memories SET temporary = true FROM lanes l WHERE l.temporary AND memories.lane_id = l.id",
    """UPDATE past_states SET temporary = true FROM memories m
    WHERE m.temporary AND past_states.memory_id = m.id""",
)


def upgrade() -> None:
    for table in TABLES:
        op.add_column(
            table, sa.Column("temporary", sa.Boolean(), nullable=False, server_default="false")
        )
    for words in OF_EARLIER:
        op.execute(words)
    op.execute(DIGEST)
    op.add_column("private_runs", sa.Column("digest", sa.LargeBinary()))
    op.add_column("private_runs", sa.Column("ended_at", sa.DateTime(timezone=True)))
    op.execute("UPDATE private_runs SET digest = private_run_digest(project_id, run_id)")
    op.drop_constraint("pk_private_runs", "private_runs")
    op.create_primary_key("pk_private_runs", "private_runs", ["project_id", "digest"])
    op.alter_column("private_runs", "run_id", nullable=True)
    op.execute("UPDATE private_runs SET run_id = NULL WHERE privacy = 'incognito'")
    op.drop_constraint("ck_private_runs_privacy", "private_runs")
    for name, condition in (
        ("privacy", "privacy IN ('temporary', 'incognito', 'ended')"),
        ("run_id", "(privacy = 'temporary') = (run_id IS NOT NULL)"),
        ("ended", "(privacy = 'ended') = (ended_at IS NOT NULL)"),
    ):
        op.create_check_constraint(op.f(f"ck_private_runs_{name}"), "private_runs", condition)
    op.create_index(
        "ix_private_runs_run",
        "private_runs",
        ["project_id", "run_id"],
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "ix_private_runs_ended",
        "private_runs",
        ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    for words in (LANE, ENTERED, MEMORY, *MARKED):
        op.execute(words)


def downgrade() -> None:
    """The ids of incognito and ended runs are not kept, so these runs are forgotten."""
    for name in ("enter_private_run", "mark_temporary"):
        op.execute(f"DROP FUNCTION {name} CASCADE")
    for name in ("ix_private_runs_run", "ix_private_runs_ended"):
        op.drop_index(name, "private_runs")
    op.execute("DELETE FROM private_runs WHERE run_id IS NULL")
    for name in ("privacy", "run_id", "ended"):
        op.drop_constraint(f"ck_private_runs_{name}", "private_runs")
    op.drop_constraint("pk_private_runs", "private_runs")
    op.alter_column("private_runs", "run_id", nullable=False)
    op.create_primary_key("pk_private_runs", "private_runs", ["project_id", "run_id"])
    op.create_check_constraint(
        op.f("ck_private_runs_privacy"), "private_runs", "privacy IN ('temporary', 'incognito')"
    )
    for name in ("digest", "ended_at"):
        op.drop_column("private_runs", name)
    op.execute("DROP FUNCTION private_run_digest(uuid, text)")
    for table in TABLES:
        op.drop_column(table, "temporary")
