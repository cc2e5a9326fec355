"""webhooks: a trigger, a lock, and a change of all rows"""

from __future__ import annotations

from alembic import op

revision = "9006"
down_revision = "9005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("LOCK TABLE projects IN SHARE ROW EXCLUSIVE MODE")
    op.execute("UPDATE webhooks SET name = name")
    op.execute(
        "CREATE FUNCTION unchanged() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
    )
    op.execute(
        "CREATE TRIGGER kept BEFORE UPDATE ON webhooks FOR EACH ROW EXECUTE FUNCTION unchanged()"
    )
