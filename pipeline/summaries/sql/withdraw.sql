-- An undone event is in these versions: the next one is made of the messages that are left. The new
-- number makes a worker fail that is making one of the same messages.
WITH gone AS (
    DELETE FROM summaries s USING lanes l
    WHERE s.lane_id = CAST(:lane_id AS uuid) AND l.id = s.lane_id
      AND s.until_seq >= CAST(:seq AS bigint) AND s.after_seq < CAST(:seq AS bigint)
    RETURNING s.version
)
UPDATE summary_states SET
    version = version + 1,
    due_at = CASE WHEN EXISTS (SELECT FROM gone) THEN now() ELSE due_at END
WHERE lane_id = CAST(:lane_id AS uuid)
