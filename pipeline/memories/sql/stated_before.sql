-- The receipt lines of the last event with the same messages and options as each of these events,
-- among the lane's last events. `memory`: the memory's text if it still is that of the line. The
-- messages of a dry run are among its options.
WITH added AS MATERIALIZED (
    SELECT e.id, e.options - 'dry_run' AS options, coalesce(spoken.messages, dry.messages) AS messages
    FROM events e, LATERAL (
        SELECT jsonb_agg(jsonb_build_array(m.role, m.name, m.content) ORDER BY m.ordinal) AS messages
        FROM messages m WHERE m.lane_id = e.lane_id AND m.seq = e.seq
    ) spoken, LATERAL (
        SELECT jsonb_agg(jsonb_build_array(m -> 'role', m -> 'name', m -> 'content') ORDER BY n)
            AS messages
        FROM jsonb_array_elements(e.options #> '{dry_run,messages}') WITH ORDINALITY AS d (m, n)
    ) dry
    WHERE e.id = ANY (CAST(:event_ids AS uuid[]))
), recent AS MATERIALIZED (
    SELECT e.id, e.seq, e.options, spoken.messages
    FROM (
        SELECT * FROM events
        WHERE lane_id = CAST(:lane_id AS uuid) AND seq < CAST(:before AS bigint)
        ORDER BY seq DESC
        LIMIT CAST(:reach AS integer)
    ) e, LATERAL (
        SELECT jsonb_agg(jsonb_build_array(m.role, m.name, m.content) ORDER BY m.ordinal) AS messages
        FROM messages m WHERE m.lane_id = e.lane_id AND m.seq = e.seq
    ) spoken
    WHERE e.status = 'SUCCEEDED' AND e.event_type = 'ADD' AND e.undone_at IS NULL
)
SELECT a.id AS event_id, r.text, r.message_ordinal, m.text AS memory
FROM added a
CROSS JOIN LATERAL (
    SELECT p.id FROM recent p
    WHERE p.options - 'dry_run' = a.options AND p.messages = a.messages
    ORDER BY p.seq DESC
    LIMIT 1
) earlier
JOIN receipts r ON r.event_id = earlier.id
LEFT JOIN memories m ON m.id = r.memory_id AND m.lane_id = CAST(:lane_id AS uuid)
    AND m.state = 'ACTIVE' AND m.text = r.text
ORDER BY a.id, r.ordinal
