"""shown states: marks of outdated suggestions and of open conflicts, kept by triggers"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from pipeline.ledger.migrations.online import add_index, add_trigger, drop_index, in_batches

revision = "0088"
down_revision = "0087"

# The functions, each followed by a line that has only a semicolon.
STATEMENTS = Path(__file__).with_suffix(".sql")
NEWEST: list[str | sa.TextClause] = [sa.text("created_at DESC"), "id"]
SHOWN = sa.text("shown_state(state, outdated)")
CHANGED = " OR ".join(
    f"OLD.{column} IS DISTINCT FROM NEW.{column}"
    for column in (
        *("version", "state", "forgotten_at", "text_hash"),
        *("expiration_date", "project_id", "lane_id"),
    )
)
# The table, the events, the condition and the function of each trigger, by its name.
TRIGGERS = {
    "shown_of_member": (
        "conflict_members",
        "INSERT OR DELETE OR UPDATE",
        None,
        "show_conflict_of_member",
    ),
    "shown_of_conflict": ("conflicts", "UPDATE OF resolved_by, project_id", None, "show_conflict"),
    "shown_of_suggestion": (
        "suggestions",
        "INSERT OR UPDATE OF state, targets, project_id, lane_id, event_id, run_id",
        "NEW.state = 'OPEN'",
        "show_suggestion",
    ),
    "shown_deleted": ("memories", "DELETE", None, "show_decisions_of_memory"),
    "shown_updated": ("memories", "UPDATE", CHANGED, "show_decisions_of_memory"),
    "shown_undone": (
        "events",
        "UPDATE OF undone_at",
        "OLD.undone_at IS DISTINCT FROM NEW.undone_at",
        "show_conflicts_of_event",
    ),
    "shown_cleared": (
        "lanes",
        "UPDATE OF forgotten_seq",
        "OLD.forgotten_seq <> NEW.forgotten_seq",
        "show_suggestions_of_lane",
    ),
}
MARKS = {
    "suggestions": "SELECT mark_suggestions(ARRAY(SELECT id FROM suggestions"
    " WHERE state = 'OPEN' AND outdated <> is_outdated(suggestions) AND {within}))",
    "conflicts": "SELECT mark_conflicts(ARRAY(SELECT id FROM conflicts"
    " WHERE open_until IS DISTINCT FROM open_until(conflicts) AND {within}))",
}
FUNCTIONS = (
    "show_suggestions_of_lane()",
    "show_conflicts_of_event()",
    "show_decisions_of_memory()",
    "show_suggestion()",
    "show_conflict()",
    "show_conflict_of_member()",
    "mark_conflicts(uuid[])",
    "mark_suggestions(uuid[])",
    "open_until(conflicts)",
    "is_outdated(suggestions)",
    "shown_state(text, boolean)",
)
INDEXES: dict[str, tuple[str, list[str | sa.TextClause], str | None]] = {
    "ix_suggestions_shown": ("suggestions", ["project_id", SHOWN, *NEWEST], None),
    "ix_suggestions_kind": ("suggestions", ["project_id", "kind", *NEWEST], None),
    "ix_suggestions_kind_shown": ("suggestions", ["project_id", "kind", SHOWN, *NEWEST], None),
    "ix_conflicts_open": ("conflicts", ["project_id", *NEWEST], "open_until IS NOT NULL"),
    "ix_conflicts_resolved": ("conflicts", ["project_id", *NEWEST], "open_until IS NULL"),
    "ix_conflicts_until": (
        "conflicts",
        ["open_until", "project_id"],
        "open_until < 'infinity'",
    ),
    "ix_conflicts_resolved_by": ("conflicts", ["resolved_by"], "resolved_by IS NOT NULL"),
    # The memories that an add stored in place of a change, see is_outdated.
    "ix_receipts_suggested": ("receipts", ["memory_id"], "suggestion_id IS NOT NULL"),
}


def upgrade() -> None:
    op.execute(
        "ALTER TABLE suggestions ADD COLUMN IF NOT EXISTS outdated boolean DEFAULT false NOT NULL"
    )
    op.execute("ALTER TABLE conflicts ADD COLUMN IF NOT EXISTS open_until date")
    for function in STATEMENTS.read_text("utf-8").split("\n;\n"):
        op.execute(function)
    op.execute("ALTER INDEX ix_suggestions_targets SET (fastupdate = off)")
    add_index(
        "ix_suggestions_current",
        "suggestions",
        ["targets"],
        where="state = 'OPEN' AND NOT outdated",
        postgresql_using="gin",
        postgresql_ops={"targets": "jsonb_path_ops"},
        postgresql_with={"fastupdate": "off"},
    )
    # Before the triggers, which look up rows by them.
    for name, (table, columns, where) in INDEXES.items():
        add_index(name, table, columns, where=where)
    for name, (table, events, when, function) in TRIGGERS.items():
        condition = f"WHEN ({when}) " if when else ""
        add_trigger(name, table, events, f"{condition}EXECUTE FUNCTION {function}()")
    # From here on each change is marked; these are the rows from before.
    for table, statement in MARKS.items():
        in_batches(statement, table)
    drop_index("ix_suggestions_state", "suggestions")


def downgrade() -> None:
    add_index("ix_suggestions_state", "suggestions", ["project_id", "state", *NEWEST])
    for name, (table, *_) in reversed(TRIGGERS.items()):
        op.execute(f"DROP TRIGGER {name} ON {table}")
    for name, (table, _, _) in reversed(INDEXES.items()):
        drop_index(name, table)
    drop_index("ix_suggestions_current", "suggestions")
    op.execute("ALTER INDEX ix_suggestions_targets RESET (fastupdate)")
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")
    op.drop_column("conflicts", "open_until")
    op.drop_column("suggestions", "outdated")
