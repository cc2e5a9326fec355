-- An entity and all that is merged into it, directly or through others.
WITH RECURSIVE below AS (
    SELECT id FROM entities WHERE id = CAST(:node_id AS uuid)
    UNION
    SELECT e.id FROM entities e JOIN below ON e.merged_into = below.id
    JOIN entities n ON n.id = CAST(:node_id AS uuid) AND e.root_id = coalesce(n.root_id, n.id)
)
SELECT id FROM below
