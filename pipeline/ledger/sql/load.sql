-- All a stage works with, in one round trip: the batch's events with their messages, what earlier
-- stages put out, and what the scope said before.
WITH batch AS MATERIALIZED (
    SELECT id, lane_id, seq, options, coalesce(replayed_at, created_at) AS since FROM events
    WHERE batch_id = CAST(:batch_id AS uuid) AND status = 'RUNNING'
)
SELECT
    (SELECT extract(epoch FROM now() - min(since))::float8 FROM batch) AS age_s,
    (SELECT custom_instructions FROM projects WHERE id = CAST(:project_id AS uuid)) AS instructions,
    (SELECT jsonb_object_agg(stage, output) FROM stage_runs
      WHERE batch_id = CAST(:batch_id AS uuid)) AS outputs,
    (SELECT jsonb_agg(jsonb_build_object(
        'id', b.id, 'seq', b.seq, 'options', b.options, 'messages', (
            SELECT jsonb_agg(jsonb_build_object(
                'role', m.role, 'name', m.name, 'content', m.content, 'said_at', m.said_at
            ) ORDER BY m.ordinal)
            FROM messages m WHERE m.lane_id = b.lane_id AND m.seq = b.seq
        )) ORDER BY b.seq)
     FROM batch b) AS events,
    (SELECT jsonb_agg(jsonb_build_object('role', c.role, 'name', c.name, 'content', c.content)
        ORDER BY c.seq, c.ordinal)
     FROM (
        SELECT m.seq, m.ordinal, m.role, m.name, m.content FROM messages m
        WHERE m.lane_id = CAST(:lane_id AS uuid) AND m.seq < (SELECT min(seq) FROM batch)
          -- What was taken back is not even hinted at.
          AND NOT EXISTS (
              SELECT FROM events e WHERE e.lane_id = m.lane_id AND e.seq = m.seq
                AND (e.status = 'CANCELLED' OR e.undone_at IS NOT NULL))
        ORDER BY m.seq DESC, m.ordinal DESC
        LIMIT CAST(:context AS integer)
     ) c) AS context
