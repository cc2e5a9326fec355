-- End a batch: its events get their final status, and the lane is queued again or becomes IDLE.
-- accepted_seq is read under the row's lock, so an event accepted at the same time is not missed.
-- The project's webhooks get a delivery for each event. With `notify`, API processes that wait for
-- the events are notified: see pipeline/events/notifications.py. Transactions that notify commit
-- one at a time, so it is off for events that no request waits for. Messages of the batch count
-- towards the next summary of their scope, unless `summary_messages` is NULL. Events without receipt
-- lines get the note, and those of `left_out`.
WITH moved AS (
    UPDATE lanes SET
        settled_seq = CAST(:last_seq AS bigint),
        state = CASE WHEN accepted_seq > CAST(:last_seq AS bigint) THEN 'QUEUED' ELSE 'IDLE' END,
        due_at = CASE WHEN accepted_seq > CAST(:last_seq AS bigint)
                      THEN now() + CAST(:grace AS interval) END,
        next_curation_at = coalesce(next_curation_at, now()),
        stage = 'extract', batch_id = NULL,
        owner = NULL, attempts = 0, waits = 0, wait_code = NULL,
        width = nullif(least(width * 2, CAST(:full_width AS integer)), CAST(:full_width AS integer))
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING state, coalesce(normal_seq <= settled_seq, false) AS low
), ended AS (
    UPDATE events SET
        status = CAST(:status AS text),
        failure_code = CAST(:failure_code AS text),
        failure_detail = CAST(:failure_detail AS text),
        graph_status = CAST(:graph_status AS text),
        note = CASE WHEN events.id <> ALL (CAST(:left_out AS uuid[]))
                     AND EXISTS (SELECT FROM receipts r WHERE r.event_id = events.id)
                    THEN NULL ELSE CAST(:note AS text) END,
        mode = CAST(:mode AS text), mode_reason = CAST(:mode_reason AS text),
        completed_at = now()
    FROM moved
    WHERE events.batch_id = CAST(:batch_id AS uuid) AND events.status = 'RUNNING'
    RETURNING events.id, events.project_id, events.lane_id, events.seq, events.tokens,
              events.event_type,
              extract(epoch FROM now() - coalesce(events.replayed_at, events.created_at))::float8 AS age_s
), announced AS (
    INSERT INTO webhook_deliveries (id, webhook_id, project_id, lane_id, event_type, body)
    SELECT gen_random_uuid(), w.id, e.project_id, e.lane_id, 'event_' || lower(CAST(:status AS text)),
           jsonb_strip_nulls(jsonb_build_object('event_details', jsonb_build_object(
               'event_id', e.id, 'event', CAST(:status AS text), 'event_type', e.event_type,
               'code', CAST(:failure_code AS text), 'user_id', l.user_id, 'agent_id', l.agent_id,
               'app_id', l.app_id, 'run_id', l.run_id)))::text
    FROM ended e
    JOIN lanes l ON l.id = e.lane_id
    JOIN webhooks w ON w.project_id = e.project_id AND w.is_active
    WHERE 'event_' || lower(CAST(:status AS text)) = ANY (w.event_types)
      AND e.event_type <> 'DRY_RUN'
    -- As the foreign key does: a webhook that is deleted at the same time gets no delivery.
    FOR KEY SHARE OF w
), turn AS (
    SELECT e.lane_id, e.project_id, e.tokens, (
        SELECT count(*) FROM messages m
        WHERE m.lane_id = e.lane_id AND m.seq = e.seq AND m.role IN ('user', 'assistant')
    ) AS messages
    FROM ended e
    WHERE CAST(:summary_messages AS integer) IS NOT NULL AND e.event_type <> 'DRY_RUN'
), summarized AS (
    INSERT INTO summary_states AS s (lane_id, project_id, messages, tokens, due_at)
    SELECT lane_id, project_id, sum(messages), sum(tokens),
           CASE WHEN sum(messages) >= CAST(:summary_messages AS integer)
                  OR sum(tokens) >= CAST(:summary_tokens AS bigint) THEN now() END
    FROM turn
    GROUP BY lane_id, project_id
    ON CONFLICT (lane_id) DO UPDATE SET
        messages = s.messages + excluded.messages,
        tokens = s.tokens + excluded.tokens,
        due_at = CASE WHEN s.messages + excluded.messages >= CAST(:summary_messages AS integer)
                        OR s.tokens + excluded.tokens >= CAST(:summary_tokens AS bigint)
                      THEN coalesce(s.due_at, now()) ELSE s.due_at END
)
SELECT state, low,
       (SELECT array_agg(age_s) FROM ended) AS ages_s,
       (SELECT count(pg_notify('memlane_event_ended', id || ' ' || CAST(:status AS text)))
        FROM ended WHERE CAST(:notify AS boolean)) AS notified
FROM moved
