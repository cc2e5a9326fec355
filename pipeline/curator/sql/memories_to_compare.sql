-- The scope's memories that no open suggestion names: oldest first, at most :limit. A suggestion is
-- open while none of its memories has changed. Memories that no model may change (immutable, pinned,
-- edited by a person) and summaries of procedures are left out.
WITH open AS MATERIALIZED (
    SELECT (target ->> 'memory_id')::uuid AS memory_id
    FROM suggestions s, jsonb_array_elements(s.targets) AS target
    WHERE s.lane_id = CAST(:lane_id AS uuid) AND s.state = 'OPEN' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(s.targets) AS other
        WHERE NOT EXISTS (
            SELECT FROM memories m
            WHERE m.id = (other ->> 'memory_id')::uuid AND m.state = 'ACTIVE'
              AND m.version = (other ->> 'version')::integer))
)
SELECT m.*, array_to_string(m.terms, ' ') AS words,
       CASE m.embedder WHEN CAST(:embedder AS text) THEN m.embedding END AS vector
FROM memories m
WHERE m.lane_id = CAST(:lane_id AS uuid) AND m.state = 'ACTIVE' AND NOT m.immutable
  AND NOT m.pinned AND m.edited_at IS NULL AND m.memory_type <> 'procedural'
  AND (m.expiration_date IS NULL OR m.expiration_date >= (now() AT TIME ZONE 'UTC')::date)
  AND m.id NOT IN (SELECT memory_id FROM open)
ORDER BY m.created_at, m.id
LIMIT CAST(:limit AS integer)
