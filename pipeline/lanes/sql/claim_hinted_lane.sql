-- Claim the lane that a hint names, by compare-and-set: only a hint with the newest fence succeeds,
-- and only once. Which lane is next is the order of the hints: workers/fair_queues.py. The
-- same round trip returns the stage's input: the batch's events with their messages, the outputs of
-- earlier stages, and the scope's earlier messages.
-- The attempt is counted before the work, so a crash cannot hide it. Only the first few are counted
-- here: after those the lane is a suspect, whose attempts are counted when it is processed alone;
-- see count_suspect_attempt.sql.
-- A lane without a batch gets one now, fixed until it settles: the longest prefix of the queue with
-- equal options within the width and the token budget; always at least one event. The queue ends
-- where this statement's snapshot does (`before`): an event accepted later is not skipped. Events
-- that already have a batch_id keep that batch, even if the width limit has shrunk: the saved
-- outputs refer to events by their place in it.
WITH before AS (
    SELECT * FROM lanes
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
      AND stage = CAST(:stage AS text) AND state = 'QUEUED'
), head AS MATERIALIZED (
    SELECT first.batch_id FROM before b, LATERAL (
        SELECT e.batch_id FROM events e
        WHERE e.lane_id = b.id AND e.seq > b.settled_seq AND e.seq <= b.accepted_seq
          AND e.status = 'PENDING' AND b.batch_id IS NULL
        ORDER BY e.seq
        LIMIT 1
    ) first
), claimed AS (
    UPDATE lanes SET
        state = 'RUNNING',
        fence = lanes.fence + 1,
        owner = CAST(:owner AS uuid),
        due_at = now() + CAST(:lease AS interval),
        attempts = lanes.attempts
            + CASE WHEN lanes.attempts < CAST(:shared_attempts AS smallint) THEN 1 ELSE 0 END,
        batch_id = coalesce(
            lanes.batch_id, (SELECT batch_id FROM head), CAST(:new_batch_id AS uuid)),
        -- A batch whose memories are stored was put back for its graph alone: see replay_graph.sql.
        stage = CASE WHEN lanes.stage = 'extract' AND EXISTS (
            SELECT FROM stage_runs r
            WHERE r.batch_id = coalesce(lanes.batch_id, (SELECT batch_id FROM head))
              AND r.stage = 'apply'
        ) THEN 'relate' ELSE lanes.stage END
    FROM before
    WHERE lanes.id = before.id AND lanes.fence = before.fence AND lanes.state = before.state
      AND lanes.stage = before.stage
    RETURNING lanes.fence, lanes.attempts, lanes.stage
), queue AS (
    -- LATERAL passes the lane in, so that the index is read in order and not beyond the width, even
    -- if the queue is long.
    SELECT waiting.id, waiting.seq, waiting.tokens, waiting.batch_id,
           waiting.options = first_value(waiting.options) OVER upto
           AND waiting.batch_id IS NOT DISTINCT FROM first_value(waiting.batch_id) OVER upto AS alike
    FROM before b, head, LATERAL (
        SELECT e.id, e.seq, e.tokens, e.batch_id, e.options FROM events e
        WHERE e.lane_id = b.id AND e.seq > b.settled_seq AND e.seq <= b.accepted_seq
          AND e.status = 'PENDING' AND EXISTS (SELECT FROM claimed)
        ORDER BY e.seq
        LIMIT CASE WHEN head.batch_id IS NULL THEN coalesce(b.width, CAST(:full_width AS integer))
                   ELSE CAST(:widest AS integer) END
    ) waiting
    WINDOW upto AS (ORDER BY waiting.seq)
), prefix AS (
    SELECT id, batch_id, row_number() OVER upto AS place, sum(tokens) OVER upto AS tokens,
           bool_and(alike) OVER upto AS alike
    FROM queue WINDOW upto AS (ORDER BY seq)
), frozen AS (
    UPDATE events SET batch_id = coalesce(events.batch_id, CAST(:new_batch_id AS uuid)),
                      status = 'RUNNING', started_at = coalesce(started_at, now())
    FROM prefix
    WHERE events.id = prefix.id AND events.status = 'PENDING' AND prefix.alike
      AND (prefix.place = 1 OR prefix.batch_id IS NOT NULL
           OR prefix.tokens <= CAST(:batch_tokens AS integer))
    RETURNING events.id, events.lane_id, events.seq, events.options, events.replays,
              events.replayed_at, events.created_at, events.started_at, events.copy_of,
              events.traceparent
), batch AS MATERIALIZED (
    SELECT * FROM frozen
    UNION ALL
    SELECT e.id, e.lane_id, e.seq, e.options, e.replays, e.replayed_at, e.created_at, e.started_at,
           e.copy_of, e.traceparent
    FROM before b JOIN events e ON e.batch_id = b.batch_id
    WHERE e.status = 'RUNNING'
)
SELECT
    h.fence, h.attempts, h.stage, h.attempts > b.attempts AS counted, b.project_id, b.user_id, b.agent_id, b.app_id, b.run_id, b.accepted_seq,
    known.batch_id, b.waits, coalesce(b.normal_seq <= b.settled_seq, false) AS low,
    (SELECT extract(epoch FROM now() - min(coalesce(replayed_at, created_at)))::float8
     FROM batch) AS age_s,
    -- A replay of the graph alone keeps the start of the first run.
    (SELECT extract(epoch FROM now() - min(greatest(
        started_at, coalesce(replayed_at, created_at))))::float8
     FROM batch) AS started_s,
    (SELECT jsonb_build_object('id', id, 'mode', mode, 'budget', budget, 'gather', gather,
        'graph_types', graph_types, 'attributes', custom_attributes, 'enable_graph', enable_graph,
        'instructions', jsonb_build_object(
            'custom', custom_instructions, 'agent', agent_custom_instructions,
            'includes', includes, 'excludes', excludes, 'categories', custom_categories)
     -- A shadow uses the settings of its scope's project.
     ) FROM projects WHERE id = coalesce(
        (SELECT s.project_id FROM shadows s WHERE s.id = b.project_id), b.project_id)
    ) AS project,
    CASE WHEN known.batch_id IS NULL THEN 0 ELSE (
        SELECT count(*) FROM failed_runs f
        WHERE f.batch_id = known.batch_id AND f.stage = 'retrieve' AND f.code = CAST(:outdated AS text)
    ) END AS reconsidered,
    (SELECT jsonb_object_agg(r.stage, r.output) FROM stage_runs r
      WHERE r.batch_id = known.batch_id) AS outputs,
    EXISTS (SELECT FROM kept_answers k WHERE k.lane_id = b.id) AS answers_kept,
    (SELECT jsonb_build_object('llm', s.llm_model, 'embedder', s.embedder_model,
        'recorded', CASE WHEN s.recorded THEN (
            -- An original that is queued again has no batch; this batch has no answers either.
            SELECT coalesce(o.batch_id, known.batch_id) FROM batch e JOIN events o ON o.id = e.copy_of
            ORDER BY e.seq LIMIT 1) END)
     FROM shadows s WHERE s.id = b.project_id) AS override,
    (SELECT jsonb_agg(jsonb_build_object(
        'id', e.id, 'seq', e.seq, 'replays', e.replays, 'options', e.options,
        'created_at', e.created_at, 'traceparent', e.traceparent, 'messages', (
            SELECT jsonb_agg(jsonb_build_object(
                'role', m.role, 'name', m.name, 'content', m.content, 'said_at', m.said_at
            ) ORDER BY m.ordinal)
            FROM messages m WHERE m.lane_id = e.lane_id AND m.seq = e.seq
        )) ORDER BY e.seq)
     FROM batch e) AS events,
    (SELECT jsonb_agg(jsonb_build_object('role', c.role, 'name', c.name, 'content', c.content)
        ORDER BY c.seq, c.ordinal)
     FROM (
        SELECT m.seq, m.ordinal, m.role, m.name, m.content FROM messages m
        WHERE m.lane_id = b.id AND m.seq < (SELECT min(seq) FROM batch)
          AND m.seq > b.forgotten_seq
          -- No messages of cancelled, failed or undone events.
          AND NOT EXISTS (
              SELECT FROM events e WHERE e.lane_id = m.lane_id AND e.seq = m.seq
                AND (e.status IN ('CANCELLED', 'FAILED') OR e.undone_at IS NOT NULL))
        ORDER BY m.seq DESC, m.ordinal DESC
        LIMIT CAST(:context AS integer)
     ) c) AS context,
    -- The newest summary that ends before the batch. A copy in a shadow has that of its original.
    (SELECT t.text FROM (
        SELECT coalesce(o.lane_id, e.lane_id) AS lane_id, coalesce(o.seq, e.seq) AS seq
        FROM batch e LEFT JOIN events o ON o.id = e.copy_of
        ORDER BY e.seq LIMIT 1
     ) first
     JOIN lanes l ON l.id = first.lane_id
     JOIN summaries t ON t.lane_id = l.id AND t.after_seq = l.forgotten_seq
         AND t.until_seq < first.seq
     WHERE CAST(:context AS integer) > 0
     ORDER BY t.version DESC LIMIT 1) AS summary
FROM claimed h, before b,
     LATERAL (SELECT coalesce(b.batch_id, (SELECT batch_id FROM head)) AS batch_id) known
