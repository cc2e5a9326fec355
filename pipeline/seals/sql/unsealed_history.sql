-- The next versions of a project's memories, newest first, with those that have no seal. The line of
-- kind page has the last version and the number of versions.
WITH page AS MATERIALIZED (
    SELECT memory_id, version, created_at, imported_at FROM memory_history
    WHERE project_id = CAST(:project_id AS uuid)
      AND created_at <= CAST(:created_at AS timestamptz)
      AND (created_at < CAST(:created_at AS timestamptz)
           OR (memory_id, -version) > (CAST(:row_id AS uuid), -CAST(:row_no AS integer)))
    ORDER BY created_at DESC, memory_id, version DESC
    LIMIT CAST(:limit AS integer)
)
SELECT 'history' AS kind, m.lane_id, p.memory_id AS row_id, p.version AS row_no,
       greatest(p.created_at, p.imported_at) AS at, 0 AS number
FROM page p
LEFT JOIN LATERAL (SELECT lane_id FROM memories WHERE id = p.memory_id OFFSET 0) m ON true
WHERE NOT EXISTS (
    SELECT FROM seals s JOIN seal_heads h ON h.lane_id = s.lane_id
    WHERE s.row_id = p.memory_id AND s.kind = 'history' AND s.row_no = p.version
      AND s.erased_by IS NULL
      AND h.project_id = CAST(:project_id AS uuid) AND s.number <= h.number)
UNION ALL
SELECT 'page', NULL, last.memory_id, last.version, last.created_at, CAST(last.number AS integer)
FROM (
    SELECT page.*, count(*) OVER () AS number FROM page
    ORDER BY created_at, memory_id DESC, version LIMIT 1
) last
