-- Every memory of a scope that a batch may change or collide with, as it is now. Each way has an index
-- of its own; both together would read the whole scope.
SELECT * FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND id IN (
    SELECT unnest(CAST(:ids AS uuid[]))
    UNION
    SELECT id FROM memories
    WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
      AND text_hash = ANY (CAST(:hashes AS bytea[]))
)
