"""past merges: the merges of entities that were split, and a limit of the ends of a relation"""

from __future__ import annotations

from alembic import op

from pipeline.ledger.migrations.online import add_trigger

revision = "0091"
down_revision = "0090"

MERGES = """
CREATE OR REPLACE FUNCTION keep_past_merge() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- The newest 100. A change of a merge of the same transaction replaces none that was ever read.
    IF coalesce(OLD.merged_at, '-infinity') < now() THEN
        NEW.past_merges := jsonb_path_query_array(
            coalesce(OLD.past_merges, '[]') || jsonb_build_object(
                'merged_into', OLD.merged_into, 'merge_reason', OLD.merge_reason,
                'merged_at', OLD.merged_at, 'replaced_at', now()),
            '$[last - 99 to last]');
    END IF;
    RETURN NEW;
END $$
"""
CHANGED = (
    "OLD.merged_into IS NOT NULL AND OLD.project_id = NEW.project_id"
    " AND OLD.merged_into IS DISTINCT FROM NEW.merged_into"
)
# Like that of revision 0089, with a limit.
ENDS = """
CREATE OR REPLACE FUNCTION keep_past_end() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- The newest 100. A change of the same transaction replaces no end that was ever read.
    IF greatest(
        OLD.expired_at, CAST(OLD.past_ends -> -1 ->> 'replaced_at' AS timestamptz)
    ) < now() THEN
        NEW.past_ends := {kept};
    END IF;
    RETURN NEW;
END $$
"""
ALL_ENDS = """coalesce(OLD.past_ends, '[]') || jsonb_build_object(
            'valid_to', OLD.valid_to, 'expired_at', OLD.expired_at, 'ended_by', OLD.ended_by,
            'replaced_at', now())"""


def upgrade() -> None:
    op.execute("ALTER TABLE entities ADD COLUMN IF NOT EXISTS past_merges jsonb")
    op.execute(MERGES)
    action = f"WHEN ({CHANGED}) EXECUTE FUNCTION keep_past_merge()"
    add_trigger("past_merge_kept", "entities", "UPDATE", action, moment="BEFORE")
    newest = f"jsonb_path_query_array({ALL_ENDS}, '$[last - 99 to last]')"
    op.execute(ENDS.replace("{kept}", newest))


def downgrade() -> None:
    op.execute(ENDS.replace("{kept}", ALL_ENDS))
    op.execute("DROP TRIGGER past_merge_kept ON entities")
    op.execute("DROP FUNCTION keep_past_merge()")
    op.drop_column("entities", "past_merges")
