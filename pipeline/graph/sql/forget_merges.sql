-- Drop the past merges into entities that are deleted: the reasons may name them.
UPDATE entities SET past_merges = (
    SELECT jsonb_agg(past.merge ORDER BY past.place)
    FROM jsonb_array_elements(entities.past_merges) WITH ORDINALITY AS past (merge, place)
    WHERE CAST(past.merge ->> 'merged_into' AS uuid) <> ALL (CAST(:node_ids AS uuid[]))
)
FROM entities deleted
WHERE deleted.id = CAST(:node_id AS uuid) AND entities.lane_id = deleted.lane_id
  AND entities.past_merges IS NOT NULL
