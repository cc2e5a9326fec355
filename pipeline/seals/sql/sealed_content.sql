-- The content of rows as text: the events of chosen_events (id) with the lines of their receipts, and
-- the versions of memories of chosen_versions (memory_id, low, high). `at`: date since when a row can
-- be sealed; NULL: not yet. Times are numbers, because their text depends on the session. Left out are
-- columns that may change later: the state of an event, its place in the lane, and its undo. The time of
-- an import is covered, because it moves `at`: rows without one have the content of earlier releases.
-- OFFSET 0 keeps the planner from reading more than the chosen rows.
content AS MATERIALIZED (
    SELECT 'event' AS kind, e.lane_id, e.id AS row_id, CAST(e.replays AS integer) AS row_no,
           0 AS line,
           CASE WHEN e.completed_at IS NOT NULL THEN greatest(e.completed_at, e.imported_at) END AS at,
           CAST(jsonb_build_array(
               e.event_type, e.options, extract(epoch FROM e.created_at), (
                   SELECT jsonb_agg(jsonb_build_array(m.ordinal, m.role, m.name, m.content)
                                    ORDER BY m.ordinal)
                   FROM messages m WHERE m.lane_id = e.lane_id AND m.seq = e.seq
               )) || CASE WHEN e.imported_at IS NULL THEN '[]'
                          ELSE jsonb_build_array(extract(epoch FROM e.imported_at)) END
               AS text) AS content
    FROM chosen_events c
    CROSS JOIN LATERAL (SELECT * FROM events WHERE id = c.id OFFSET 0) e
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.erased_at IS NULL
    UNION ALL
    SELECT 'receipt', e.lane_id, r.event_id, CAST(r.ordinal AS integer), CAST(r.ordinal AS integer),
           CASE WHEN e.completed_at IS NOT NULL
                THEN greatest(coalesce(r.adopted_at, e.completed_at), e.imported_at) END,
           CAST(jsonb_build_array(r.outcome, r.memory_id, r.text, r.previous_text, r.reason,
                                  r.message_ordinal) AS text)
    FROM chosen_events c
    CROSS JOIN LATERAL (SELECT * FROM events WHERE id = c.id OFFSET 0) e
    CROSS JOIN LATERAL (SELECT * FROM receipts WHERE event_id = e.id OFFSET 0) r
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.erased_at IS NULL
    UNION ALL
    SELECT 'history', m.lane_id, h.memory_id, h.version, h.version,
           greatest(h.created_at, h.imported_at),
           CAST(jsonb_build_array(
               h.event, h.old_text, h.new_text, h.metadata, h.expiration_date, h.reason, h.event_id,
               h.message_ordinal, h.undoes, extract(epoch FROM h.said_at),
               extract(epoch FROM h.valid_from), h.structure, extract(epoch FROM h.created_at)
           ) || CASE WHEN h.imported_at IS NULL THEN '[]'
                     ELSE jsonb_build_array(extract(epoch FROM h.imported_at)) END AS text)
    FROM chosen_versions c
    CROSS JOIN LATERAL (
        SELECT * FROM memory_history
        WHERE memory_id = c.memory_id AND version BETWEEN c.low AND c.high OFFSET 0
    ) h
    CROSS JOIN LATERAL (SELECT lane_id FROM memories WHERE id = h.memory_id OFFSET 0) m
    WHERE h.project_id = CAST(:project_id AS uuid)
)
