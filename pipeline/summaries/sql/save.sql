-- Store the next version, unless the one that it was made from is not the newest any more
-- (optimistic lock): another worker was faster, or an undo or a deletion has changed the messages.
-- An erasure raises the lane's epoch: the versions of the scope start again at 0 then.
WITH lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND epoch = CAST(:epoch AS bigint)
    FOR KEY SHARE
), saved AS (
    UPDATE summary_states SET
        version = version + 1, tries = 0, reason = NULL, claimed_until = NULL,
        messages = greatest(messages - CAST(:messages AS integer), 0),
        tokens = greatest(tokens - CAST(:tokens AS bigint), 0),
        due_at = CASE WHEN CAST(:more AS boolean) THEN now() END
    FROM lane
    WHERE lane_id = lane.id AND version = CAST(:version AS integer)
    RETURNING lane_id, project_id, version
), dropped AS (
    DELETE FROM summaries USING saved
    WHERE summaries.lane_id = saved.lane_id
      AND summaries.version <= saved.version - CAST(:kept AS integer)
)
INSERT INTO summaries (
    lane_id, version, project_id, text, after_seq, until_seq, messages, model, prompt
)
SELECT lane_id, version, project_id, CAST(:text AS text), CAST(:after_seq AS bigint),
       CAST(:until_seq AS bigint), CAST(:messages AS integer), CAST(:model AS text),
       CAST(:prompt AS text)
FROM saved
RETURNING version
