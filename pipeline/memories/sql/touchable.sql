-- Active memories of a scope that a batch names by id or repeats by text. UNION and not OR: each
-- half uses its own index, and OR would read the whole scope.
SELECT * FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE' AND id IN (
    SELECT unnest(CAST(:ids AS uuid[]))
    UNION
    SELECT id FROM memories
    WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
      AND text_hash = ANY (CAST(:hashes AS bytea[]))
)
