-- Take an entity out of the one that it is merged into; what is merged into it goes with it.
WITH RECURSIVE below AS (
    SELECT id FROM entities WHERE id = CAST(:node_id AS uuid)
    UNION
    SELECT e.id FROM entities e JOIN below ON e.merged_into = below.id
    JOIN entities n ON n.id = CAST(:node_id AS uuid) AND e.root_id = n.root_id
)
UPDATE entities SET
    root_id = CASE WHEN entities.id <> CAST(:node_id AS uuid) THEN CAST(:node_id AS uuid) END,
    merged_into = CASE WHEN entities.id <> CAST(:node_id AS uuid) THEN merged_into END,
    merge_reason = CASE WHEN entities.id <> CAST(:node_id AS uuid) THEN merge_reason END,
    merged_at = CASE WHEN entities.id <> CAST(:node_id AS uuid) THEN merged_at END
FROM below WHERE entities.id = below.id
