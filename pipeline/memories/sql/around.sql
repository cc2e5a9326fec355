-- True in `empty` if a scope has no memories, and its memories with these texts. At least one row.
SELECT scope.empty, m.id, m.text_hash
FROM (
    SELECT NOT EXISTS (
        SELECT FROM memories WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
    ) AS empty
) scope
LEFT JOIN memories m ON m.lane_id = CAST(:lane_id AS uuid) AND m.state = 'ACTIVE'
    AND m.text_hash = ANY (CAST(:hashes AS bytea[]))
