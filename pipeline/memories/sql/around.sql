-- Whether a scope holds anything at all, and its memories of exactly these texts: one row at least.
SELECT held.empty, m.id, m.text_hash
FROM (
    SELECT NOT EXISTS (
        SELECT FROM memories WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
    ) AS empty
) held
LEFT JOIN memories m ON m.lane_id = CAST(:lane_id AS uuid) AND m.state = 'ACTIVE'
    AND m.text_hash = ANY (CAST(:hashes AS bytea[]))
