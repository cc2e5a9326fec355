-- Append an ended event without content to a lane, which is locked.
WITH lane AS (
    UPDATE lanes SET
        accepted_seq = accepted_seq + 1,
        settled_seq = CASE state WHEN 'IDLE' THEN accepted_seq + 1 ELSE settled_seq END
    WHERE id = CAST(:lane_id AS uuid)
    RETURNING accepted_seq
)
INSERT INTO events (
    id, project_id, lane_id, seq, event_type, status, options, tokens, note, started_at,
    completed_at
)
SELECT CAST(:event_id AS uuid), CAST(:project_id AS uuid), CAST(:lane_id AS uuid), accepted_seq,
       CAST(:event_type AS text), 'SUCCEEDED', '{"incognito": true}', 0, CAST(:note AS text), now(),
       now()
FROM lane
