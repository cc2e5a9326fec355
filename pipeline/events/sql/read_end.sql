-- The end of one event as its caller needs it: status, failure, receipt, and omitted message parts.
-- The receipt of a dry run is in the output of its stage apply.
SELECT e.status, e.failure_code, e.failure_detail, e.note,
       CASE WHEN e.event_type = 'DRY_RUN' THEN (
           SELECT s.output -> 'receipt' FROM stage_runs s
           WHERE s.batch_id = e.batch_id AND s.stage = 'apply'
       ) ELSE (
           SELECT jsonb_agg(to_jsonb(r) ORDER BY r.ordinal) FROM receipts r WHERE r.event_id = e.id
       ) END AS receipt,
       (SELECT jsonb_agg(jsonb_build_object('message', m.ordinal) || part ORDER BY m.ordinal, place)
        FROM messages m, jsonb_array_elements(m.omitted) WITH ORDINALITY AS parts (part, place)
        WHERE m.lane_id = e.lane_id AND m.seq = e.seq AND m.omitted IS NOT NULL) AS omitted
FROM events e
WHERE e.project_id = CAST(:project_id AS uuid) AND e.id = CAST(:event_id AS uuid)
