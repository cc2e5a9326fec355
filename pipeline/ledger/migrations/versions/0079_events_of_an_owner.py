"""events of an owner: the time of a lane's last event, and the newest events of a lane"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, back_fill, drop_index, require

revision = "0079"
down_revision = "0078"

KINDS = ("user", "agent", "app", "run")
FUNCTION = """CREATE OR REPLACE FUNCTION note_accepted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.accepted_at := greatest(NEW.accepted_at, OLD.accepted_at, now());
    RETURN NEW; END $$"""
# Also for the writers of the release before.
TRIGGER = """CREATE OR REPLACE TRIGGER accepted_noted BEFORE UPDATE ON lanes FOR EACH ROW
WHEN (new.accepted_seq > old.accepted_seq) EXECUTE FUNCTION note_accepted()"""
LAST = "SELECT max(e.created_at) FROM events e WHERE e.lane_id = lanes.id"


def upgrade() -> None:
    op.execute("ALTER TABLE lanes ADD COLUMN IF NOT EXISTS accepted_at timestamptz")
    op.execute("ALTER TABLE lanes ALTER COLUMN accepted_at SET DEFAULT now()")
    op.execute(FUNCTION)
    op.execute(TRIGGER)
    newest: list[str | sa.TextClause] = ["lane_id", sa.text("created_at DESC"), "id"]
    add_index("ix_events_lane_newest", "events", newest)
    back_fill("lanes", f"accepted_at = coalesce(({LAST}), created_at)", where="accepted_at IS NULL")
    require("lanes", "accepted_at")
    for kind in KINDS:
        latest: list[str | sa.TextClause] = ["project_id", f"{kind}_id"]
        latest += [sa.text("accepted_at DESC"), "id"]
        add_index(f"ix_lanes_{kind}_latest", "lanes", latest, where=_where(kind))
        drop_index(f"ix_lanes_{kind}_newest", "lanes")


def downgrade() -> None:
    for kind in KINDS:
        newest: list[str | sa.TextClause] = ["project_id", f"{kind}_id"]
        newest += [sa.text("created_at DESC"), "id"]
        add_index(f"ix_lanes_{kind}_newest", "lanes", newest, where=_where(kind))
        drop_index(f"ix_lanes_{kind}_latest", "lanes")
    drop_index("ix_events_lane_newest", "events")
    op.execute("DROP TRIGGER IF EXISTS accepted_noted ON lanes")
    op.execute("DROP FUNCTION IF EXISTS note_accepted()")
    op.execute("ALTER TABLE lanes DROP COLUMN IF EXISTS accepted_at")


def _where(kind: str) -> str | None:
    """Condition of a partial index: most lanes have a user, few have the other ids."""
    return None if kind == "user" else f"{kind}_id IS NOT NULL"
