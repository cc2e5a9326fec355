-- The content of a lane's rows as text. `at`: since when a row can be sealed; NULL: not yet. Times
-- are numbers, because their text depends on the session. Left out are columns that may change later:
-- the state of an event, its place in the lane, and its undo.
content AS MATERIALIZED (
    SELECT 'event' AS kind, e.id AS row_id, CAST(e.replays AS integer) AS row_no,
           e.completed_at AS at,
           CAST(jsonb_build_array(
               e.event_type, e.options, extract(epoch FROM e.created_at), (
                   SELECT jsonb_agg(jsonb_build_array(m.ordinal, m.role, m.name, m.content)
                                    ORDER BY m.ordinal)
                   FROM messages m WHERE m.lane_id = e.lane_id AND m.seq = e.seq
               )) AS text) AS content
    FROM events e
    WHERE e.lane_id = CAST(:lane_id AS uuid) AND e.erased_at IS NULL
    UNION ALL
    SELECT 'receipt', r.event_id, CAST(r.ordinal AS integer), e.completed_at,
           CAST(jsonb_build_array(r.outcome, r.memory_id, r.text, r.previous_text, r.reason,
                                  r.message_ordinal) AS text)
    FROM events e JOIN receipts r ON r.event_id = e.id
    WHERE e.lane_id = CAST(:lane_id AS uuid) AND e.erased_at IS NULL
    UNION ALL
    SELECT 'history', h.memory_id, h.version, h.created_at,
           CAST(jsonb_build_array(
               h.event, h.old_text, h.new_text, h.metadata, h.expiration_date, h.reason, h.event_id,
               h.message_ordinal, h.undoes, extract(epoch FROM h.said_at),
               extract(epoch FROM h.valid_from), h.structure, extract(epoch FROM h.created_at)
           ) AS text)
    FROM memories m JOIN memory_history h ON h.memory_id = m.id
    WHERE m.lane_id = CAST(:lane_id AS uuid)
)
