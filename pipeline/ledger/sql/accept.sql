-- One durable statement: the scope's next number, the event and its messages, all or nothing.
-- `woken` is true where the lane was idle and somebody must be told.
WITH lane AS (
    INSERT INTO lanes (id, project_id, user_id, agent_id, app_id, run_id, accepted_seq, state, due_at)
    VALUES (
        CAST(:lane_id AS uuid), CAST(:project_id AS uuid), CAST(:user_id AS text),
        CAST(:agent_id AS text), CAST(:app_id AS text), CAST(:run_id AS text),
        1, 'QUEUED', now() + CAST(:grace AS interval)
    )
    ON CONFLICT (id) DO UPDATE SET
        accepted_seq = lanes.accepted_seq + 1,
        state = CASE lanes.state WHEN 'IDLE' THEN 'QUEUED' ELSE lanes.state END,
        due_at = coalesce(lanes.due_at, excluded.due_at)
    RETURNING id, accepted_seq AS seq, fence, accepted_seq = settled_seq + 1 AS woken
), event AS (
    INSERT INTO events (id, project_id, lane_id, seq, options, tokens)
    SELECT CAST(:event_id AS uuid), CAST(:project_id AS uuid), id, seq,
           CAST(:options AS jsonb), CAST(:tokens AS integer)
    FROM lane
), said AS (
    INSERT INTO messages (lane_id, seq, ordinal, role, name, content, said_at)
    SELECT lane.id, lane.seq, m.ordinal - 1, m.role, m.name, m.content,
           coalesce(CAST(:said_at AS timestamptz), now())
    FROM lane, unnest(
        CAST(:roles AS text[]), CAST(:names AS text[]), CAST(:contents AS text[])
    ) WITH ORDINALITY AS m (role, name, content, ordinal)
)
SELECT fence, woken FROM lane
