-- The merge of entity `e` as it was at `as_of`, or is now: one row. Merges that a split has taken back are
-- in `past_merges`, each with the time of that split.
SELECT m.merged_into, m.merge_reason, m.merged_at FROM (
    SELECT p.merged_into, p.merge_reason, p.merged_at, p.replaced_at
    FROM jsonb_to_recordset(e.past_merges) AS p (
        merged_into uuid, merge_reason text, merged_at timestamptz, replaced_at timestamptz
    )
    WHERE p.replaced_at > CAST(:as_of AS timestamptz)
    UNION ALL
    SELECT e.merged_into, e.merge_reason, e.merged_at, 'infinity'
) m
ORDER BY m.replaced_at
LIMIT 1
