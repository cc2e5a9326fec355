-- Accept any number of adds in one statement: events with their sequence numbers and messages, all
-- or nothing. `woken` is true for an add whose lane was idle: it needs a hint. So does the last add
-- of a lane whose events wait for further turns (GATHERING), and an add of normal priority in a
-- queued lane that had only events of low priority: its hint waits in a queue of that class.
-- Lock order: pipeline/ledger/locks.py.
-- Of several adds with one idempotency key, in this group or in any process, only the first is
-- accepted; the rows of the others return its event. ON CONFLICT DO UPDATE without a change makes a
-- row readable that another transaction committed a moment ago.
-- Adds of a deleted project return no row; those of a project whose deletion has begun return a row
-- and are not accepted. Either waits for a transaction of the deletion. Each message gets a stale
-- vector row, unless it is stored verbatim: then its memory has the vector.
-- A trigger marks the lanes of temporary runs, and refuses adds to incognito and ended runs.
WITH project AS MATERIALIZED (
    SELECT id, coalesce(deleting_at > now() - interval '10 minutes', false) AS deleting
    FROM projects
    WHERE id = ANY (CAST(:project_ids AS uuid[]))
    ORDER BY id
    FOR KEY SHARE
), given AS (
    SELECT a.*, project.deleting FROM unnest(
        CAST(:event_ids AS uuid[]), CAST(:lane_ids AS uuid[]), CAST(:project_ids AS uuid[]),
        CAST(:user_ids AS text[]), CAST(:agent_ids AS text[]), CAST(:app_ids AS text[]),
        CAST(:run_ids AS text[]), CAST(:options AS jsonb[]), CAST(:tokens AS integer[]),
        CAST(:said_at AS timestamptz[]), CAST(:keys AS text[]), CAST(:digests AS bytea[]),
        CAST(:traceparents AS text[])
    ) WITH ORDINALITY AS a (
        event_id, lane_id, project_id, user_id, agent_id, app_id, run_id, options, tokens, said_at,
        key, digest, traceparent, place
    )
    JOIN project ON project.id = a.project_id
), adds AS (
    SELECT * FROM given WHERE NOT deleting
), new_key AS (
    INSERT INTO idempotency_keys (project_id, key, digest, event_id)
    SELECT DISTINCT ON (project_id, key) project_id, key, digest, event_id
    FROM adds
    WHERE key IS NOT NULL
    ORDER BY project_id, key, place
    ON CONFLICT (project_id, key) DO UPDATE SET event_id = idempotency_keys.event_id
    RETURNING project_id, key, digest, event_id
), fresh AS (
    SELECT adds.*, row_number() OVER (PARTITION BY lane_id ORDER BY place) AS number,
           options ->> 'priority' IS NOT DISTINCT FROM 'low' AS low
    FROM adds WHERE key IS NULL OR event_id IN (SELECT event_id FROM new_key)
), lane AS (
    INSERT INTO lanes (
        id, project_id, user_id, agent_id, app_id, run_id, accepted_seq, normal_seq, state, due_at
    )
    SELECT lane_id, project_id, user_id, agent_id, app_id, run_id, count(*),
           CASE WHEN bool_or(low) THEN coalesce(max(number) FILTER (WHERE NOT low), 0) END,
           'QUEUED', now() + CAST(:grace AS interval)
    FROM fresh
    GROUP BY lane_id, project_id, user_id, agent_id, app_id, run_id
    ORDER BY lane_id
    ON CONFLICT (id) DO UPDATE SET
        -- An erasure removes the ids from the lane; the next add of this user sets them again.
        user_id = excluded.user_id, agent_id = excluded.agent_id,
        app_id = excluded.app_id, run_id = excluded.run_id,
        temporary = excluded.temporary,
        accepted_seq = lanes.accepted_seq + excluded.accepted_seq,
        -- Without an add of low priority the column stays as it is in a lane that never had one.
        normal_seq = CASE
            WHEN excluded.normal_seq = 0 THEN coalesce(lanes.normal_seq, lanes.accepted_seq)
            WHEN excluded.normal_seq IS NOT NULL THEN lanes.accepted_seq + excluded.normal_seq
            WHEN lanes.normal_seq IS NOT NULL THEN lanes.accepted_seq + excluded.accepted_seq END,
        state = CASE WHEN lanes.state = 'IDLE' OR lanes.state = 'WAITING' AND lanes.wait_code = 'GATHERING'
                     THEN 'QUEUED' ELSE lanes.state END,
        due_at = CASE WHEN lanes.state = 'WAITING' AND lanes.wait_code = 'GATHERING'
                      THEN excluded.due_at ELSE coalesce(lanes.due_at, excluded.due_at) END
    RETURNING id, accepted_seq, settled_seq, fence,
              state = 'QUEUED' AND wait_code IS NOT DISTINCT FROM 'GATHERING' AS gathers,
              normal_seq, coalesce(normal_seq <= settled_seq, false) AS low,
              -- The lane as it was before this statement.
              state = 'QUEUED' AND CASE WHEN normal_seq > settled_seq THEN (
                  SELECT coalesce(o.normal_seq <= o.settled_seq, false) FROM lanes o
                  WHERE o.id = lanes.id
              ) ELSE false END AS rises
), numbered AS (
    SELECT a.*, l.fence, l.settled_seq, l.accepted_seq, l.gathers, l.rises, l.normal_seq,
           l.low AS lane_is_low,
           l.accepted_seq - count(*) OVER (PARTITION BY a.lane_id) + a.number AS seq
    FROM fresh a JOIN lane l ON l.id = a.lane_id
), event AS (
    INSERT INTO events (id, project_id, lane_id, seq, event_type, options, tokens, traceparent)
    SELECT event_id, project_id, lane_id, seq,
           CASE WHEN options #> '{dry_run,id}' IS NOT NULL THEN 'DRY_RUN'
                WHEN options ->> 'records' IS NOT NULL THEN 'IMPORT'
                ELSE coalesce(options #>> '{question,kind}', 'ADD') END, options, tokens,
           traceparent
    FROM numbered
), new_message AS (
    INSERT INTO messages (lane_id, seq, ordinal, role, name, content, omitted, terms, said_at)
    SELECT n.lane_id, n.seq, m.ordinal, m.role, m.name, m.content, m.omitted,
           string_to_array(m.terms, ' '), coalesce(n.said_at, now())
    FROM unnest(
        CAST(:message_of AS integer[]), CAST(:ordinals AS smallint[]), CAST(:roles AS text[]),
        CAST(:names AS text[]), CAST(:contents AS text[]), CAST(:omitted AS jsonb[]),
        CAST(:terms AS text[])
    ) AS m (place, ordinal, role, name, content, omitted, terms)
    JOIN numbered n USING (place)
    RETURNING lane_id, seq, ordinal, role, content
), turn_vector AS (
    INSERT INTO turn_vectors (event_id, ordinal, lane_id)
    SELECT n.event_id, s.ordinal, s.lane_id
    FROM new_message s JOIN numbered n USING (lane_id, seq)
    WHERE s.role NOT IN ('system', 'tool') AND s.content ~ '[^[:space:]]'
      AND n.options ->> 'infer' IS DISTINCT FROM 'false' AND n.options #>> '{question,kind}' IS NULL
)
SELECT a.place, coalesce(k.event_id, a.event_id) AS event_id,
       n.event_id IS NOT NULL AS fresh, a.deleting,
       k.digest IS NULL OR k.digest = a.digest AS same,
       n.fence, n.lane_is_low AS low,
       n.seq = n.settled_seq + 1 OR (n.gathers AND n.seq = n.accepted_seq)
           OR (n.rises AND n.seq = n.normal_seq) AS woken
FROM given a
LEFT JOIN numbered n ON n.place = a.place
LEFT JOIN new_key k ON k.project_id = a.project_id AND k.key = a.key
ORDER BY a.place
