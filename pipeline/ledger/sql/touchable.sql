-- Every memory of a scope that a batch may change or collide with, as it is now.
SELECT * FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
  AND (id = ANY (CAST(:ids AS uuid[])) OR text_hash = ANY (CAST(:hashes AS bytea[])))
