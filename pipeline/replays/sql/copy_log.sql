-- Append the settled events of a scope's lane that the shadow does not have yet to the shadow's
-- lane. The copies are ordered by the time of their effects, not by seq: an event replayed for the
-- graph alone has a later seq, but its memories are older. Undone, cancelled and deleted events are
-- left out; events that have not settled are copied the next time. With recorded answers the copies
-- are grouped into the same batches as the originals.
WITH shadow AS MATERIALIZED (
    SELECT s.*, l.settled_seq, l.forgotten_seq, p.custom_instructions AS usual, own.accepted_seq AS base
    FROM shadows s
    JOIN lanes l ON l.id = CAST(:lane_id AS uuid)
    JOIN lanes own ON own.id = CAST(:shadow_lane_id AS uuid)
    LEFT JOIN projects p ON p.id = s.project_id
    WHERE s.id = CAST(:shadow_id AS uuid)
), done AS (
    SELECT e.*, coalesce(
        (SELECT finished_at FROM stage_runs r WHERE r.batch_id = e.batch_id AND r.stage = 'apply'),
        (SELECT finished_at FROM stage_runs r WHERE r.batch_id = e.batch_id AND r.stage = 'extract'),
        e.completed_at) AS done_at
    FROM events e, shadow s
    WHERE e.lane_id = CAST(:lane_id AS uuid) AND e.seq > s.copied_seq AND e.seq <= s.settled_seq
      AND e.status <> 'CANCELLED' AND e.undone_at IS NULL
      AND e.event_type = 'ADD' AND e.seq > s.forgotten_seq
), log AS MATERIALIZED (
    SELECT d.*, gen_random_uuid() AS copy_id,
           s.base + row_number() OVER (ORDER BY d.done_at, d.seq) AS copy_seq
    FROM done d, shadow s
    WHERE NOT EXISTS (
        SELECT FROM events c
        WHERE c.lane_id = CAST(:shadow_lane_id AS uuid) AND c.copy_of = d.id
          AND c.created_at > d.done_at)
), batch AS MATERIALIZED (
    SELECT batch_id, gen_random_uuid() AS copy_id FROM log GROUP BY batch_id
), copied AS (
    INSERT INTO events (id, project_id, lane_id, seq, event_type, options, tokens, batch_id, copy_of)
    SELECT log.copy_id, s.id, CAST(:shadow_lane_id AS uuid), copy_seq, event_type,
           -- The replay's own instructions, else the event's, else the project's.
           jsonb_set(options, '{instructions,custom}', coalesce(to_jsonb(coalesce(
               s.custom_instructions, options -> 'instructions' ->> 'custom', s.usual)), 'null')),
           tokens, CASE WHEN s.recorded THEN batch.copy_id END, log.id
    FROM log LEFT JOIN batch ON batch.batch_id = log.batch_id CROSS JOIN shadow s
), new_message AS (
    INSERT INTO messages (lane_id, seq, ordinal, role, name, content, omitted, terms, said_at)
    SELECT CAST(:shadow_lane_id AS uuid), log.copy_seq, m.ordinal, m.role, m.name, m.content,
           m.omitted, m.terms, m.said_at
    FROM log JOIN messages m ON m.lane_id = log.lane_id AND m.seq = log.seq
), progress AS (
    UPDATE shadows SET copied_seq = s.settled_seq FROM shadow s WHERE shadows.id = s.id
), lane AS (
    UPDATE lanes SET
        accepted_seq = accepted_seq + (SELECT count(*) FROM log),
        state = CASE state WHEN 'IDLE' THEN 'QUEUED' ELSE state END,
        due_at = coalesce(due_at, now() + CAST(:grace AS interval))
    WHERE id = CAST(:shadow_lane_id AS uuid) AND EXISTS (SELECT FROM log)
    RETURNING fence, settled_seq
)
SELECT (SELECT count(*) FROM log) AS copied,
       (SELECT fence FROM lane) AS fence,
       (SELECT lane.settled_seq = shadow.base FROM lane, shadow) AS woken
