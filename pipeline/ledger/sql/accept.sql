-- One durable statement for any number of adds: their scopes' next numbers, the events and their
-- messages, all or nothing. `woken` is true for the add that found its lane idle: somebody must be
-- told. Lanes are taken in the order of their ids, so that two of these can never deadlock.
WITH adds AS (
    SELECT * FROM unnest(
        CAST(:event_ids AS uuid[]), CAST(:lane_ids AS uuid[]), CAST(:project_ids AS uuid[]),
        CAST(:user_ids AS text[]), CAST(:agent_ids AS text[]), CAST(:app_ids AS text[]),
        CAST(:run_ids AS text[]), CAST(:options AS jsonb[]), CAST(:tokens AS integer[]),
        CAST(:said_at AS timestamptz[])
    ) WITH ORDINALITY AS a (
        event_id, lane_id, project_id, user_id, agent_id, app_id, run_id, options, tokens, said_at,
        place
    )
), lane AS (
    INSERT INTO lanes (id, project_id, user_id, agent_id, app_id, run_id, accepted_seq, state, due_at)
    SELECT lane_id, project_id, user_id, agent_id, app_id, run_id, count(*), 'QUEUED',
           now() + CAST(:grace AS interval)
    FROM adds
    GROUP BY lane_id, project_id, user_id, agent_id, app_id, run_id
    ORDER BY lane_id
    ON CONFLICT (id) DO UPDATE SET
        accepted_seq = lanes.accepted_seq + excluded.accepted_seq,
        state = CASE lanes.state WHEN 'IDLE' THEN 'QUEUED' ELSE lanes.state END,
        due_at = coalesce(lanes.due_at, excluded.due_at)
    RETURNING id, accepted_seq, settled_seq, fence
), numbered AS (
    SELECT a.*, l.fence, l.settled_seq,
           l.accepted_seq - count(*) OVER (PARTITION BY a.lane_id)
               + row_number() OVER (PARTITION BY a.lane_id ORDER BY a.place) AS seq
    FROM adds a JOIN lane l ON l.id = a.lane_id
), event AS (
    INSERT INTO events (id, project_id, lane_id, seq, options, tokens)
    SELECT event_id, project_id, lane_id, seq, options, tokens FROM numbered
), said AS (
    INSERT INTO messages (lane_id, seq, ordinal, role, name, content, said_at)
    SELECT n.lane_id, n.seq, m.ordinal, m.role, m.name, m.content, coalesce(n.said_at, now())
    FROM unnest(
        CAST(:message_of AS integer[]), CAST(:ordinals AS smallint[]), CAST(:roles AS text[]),
        CAST(:names AS text[]), CAST(:contents AS text[])
    ) AS m (place, ordinal, role, name, content)
    JOIN numbered n USING (place)
)
SELECT fence, seq = settled_seq + 1 AS woken FROM numbered ORDER BY place
