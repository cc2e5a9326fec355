-- Mark all vectors of these lanes as missing in the index.
UPDATE {table} SET projected_version = 0
WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))
  AND embedder = CAST(:embedder AS text)
  AND projected_version <> 0
