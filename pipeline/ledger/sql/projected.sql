-- The index holds these versions now. A memory that has moved on meanwhile stays owed.
UPDATE memories SET projected_version = done.version
FROM unnest(CAST(:ids AS uuid[]), CAST(:versions AS integer[])) AS done (id, version)
WHERE memories.id = done.id AND memories.version = done.version
