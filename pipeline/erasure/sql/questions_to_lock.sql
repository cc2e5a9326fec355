-- The lanes of open questions that the erasure withdraws: those with a saved answer that was made of
-- its lanes, and those that name the owner.
SELECT e.lane_id
FROM answer_sources s JOIN events e ON e.batch_id = s.batch_id
WHERE s.lane_id = ANY (CAST(:sources AS uuid[])) AND e.completed_at IS NULL
UNION
SELECT e.lane_id
FROM events e
WHERE owners_named(e.project_id, e.options) @> ARRAY[CAST(:owner AS text)]
  AND e.event_type <> 'ADD' AND e.event_type <> 'DRY_RUN' AND e.completed_at IS NULL
