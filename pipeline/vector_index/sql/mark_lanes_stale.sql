-- Mark all vectors of these lanes as missing in the index. Returns the lanes that have any.
WITH marked AS (
    UPDATE {table} SET projected_version = 0
    WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
      AND embedder = CAST(:embedder AS text)
      AND projected_version <> 0
)
SELECT DISTINCT lane_id FROM {table}
WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) AND embedder = CAST(:embedder AS text)
