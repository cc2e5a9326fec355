-- The index holds these versions now. A memory that has moved on meanwhile stays owed, be it to
-- another version or, by a replay that was switched on, to another lane.
UPDATE memories SET projected_version = done.version
FROM unnest(
    CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:lane_ids AS uuid[])
) AS done (id, version, lane_id)
WHERE memories.id = done.id AND memories.version = done.version AND memories.lane_id = done.lane_id
