-- The number of active memories of a scope, up to :limit; no summaries of procedures.
SELECT count(*) AS number FROM (
    SELECT FROM memories
    WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND memory_type <> 'procedural'
    LIMIT CAST(:limit AS integer)
) AS limited
