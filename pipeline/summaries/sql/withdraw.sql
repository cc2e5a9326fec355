-- Messages with these seqs are undone or move to the ends of their lanes: delete the versions that
-- were made of them. The next one is made of the messages that are left. The new number makes a
-- worker fail that is making one of the same messages.
WITH moved AS MATERIALIZED (
    SELECT lane_id, min(seq) AS seq
    FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:seqs AS bigint[])) AS m (lane_id, seq)
    GROUP BY lane_id
), gone AS (
    DELETE FROM summaries s USING moved
    WHERE s.lane_id = moved.lane_id AND s.until_seq >= moved.seq AND s.after_seq < moved.seq
    RETURNING s.lane_id
)
UPDATE summary_states SET
    version = version + 1,
    due_at = CASE WHEN summary_states.lane_id IN (SELECT lane_id FROM gone) THEN now()
                  ELSE due_at END
FROM moved
WHERE summary_states.lane_id = moved.lane_id
