"""past ends: the ends of relations that were withdrawn or changed, kept by a trigger"""

from __future__ import annotations

from alembic import op

from pipeline.ledger.migrations.online import add_trigger

revision = "0089"
down_revision = "0088"

FUNCTION = """
CREATE OR REPLACE FUNCTION keep_past_end() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- A change of an end of the same transaction replaces no end that was ever read.
    IF greatest(
        OLD.expired_at, CAST(OLD.past_ends -> -1 ->> 'replaced_at' AS timestamptz)
    ) < now() THEN
        NEW.past_ends := coalesce(OLD.past_ends, '[]') || jsonb_build_object(
            'valid_to', OLD.valid_to, 'expired_at', OLD.expired_at, 'ended_by', OLD.ended_by,
            'replaced_at', now());
    END IF;
    RETURN NEW;
END $$
"""
CHANGED = (
    "OLD.expired_at IS NOT NULL AND OLD.project_id = NEW.project_id"
    " AND (OLD.expired_at IS DISTINCT FROM NEW.expired_at"
    " OR OLD.valid_to IS DISTINCT FROM NEW.valid_to)"
)
# Ends that were withdrawn before: the receipts of undone events name them. The time in the world is
# no longer known. Undone events are few, so this is one statement.
WITHDRAWN = """
UPDATE relations SET past_ends = withdrawn.ends
FROM (
    SELECT g.relation_id, jsonb_agg(jsonb_build_object(
        'valid_to', NULL, 'expired_at', e.completed_at, 'ended_by', e.id,
        'replaced_at', e.undone_at
    ) ORDER BY e.undone_at) AS ends
    FROM events e JOIN graph_receipts g ON g.event_id = e.id
    WHERE e.undone_at > e.completed_at AND g.outcome = 'INVALIDATE'
    GROUP BY g.relation_id
) withdrawn
WHERE relations.id = withdrawn.relation_id AND relations.expired_at IS NULL
  AND relations.past_ends IS NULL
"""


def upgrade() -> None:
    op.execute("ALTER TABLE relations ADD COLUMN IF NOT EXISTS past_ends jsonb")
    op.execute(FUNCTION)
    action = f"WHEN ({CHANGED}) EXECUTE FUNCTION keep_past_end()"
    add_trigger("past_end_kept", "relations", "UPDATE", action, moment="BEFORE")
    # From here on each change is kept; these are the ends from before.
    op.execute(WITHDRAWN)


def downgrade() -> None:
    op.execute("DROP TRIGGER past_end_kept ON relations")
    op.execute("DROP FUNCTION keep_past_end()")
    op.drop_column("relations", "past_ends")
