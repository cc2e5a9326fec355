-- The next events of a project, in the order of their creation, with the rows among them and their
-- receipts that have no seal. The line of kind page has the last event and the number of events.
WITH page AS MATERIALIZED (
    SELECT id, created_at FROM events
    WHERE project_id = CAST(:project_id AS uuid)
      AND (created_at, id) > (CAST(:created_at AS timestamptz), CAST(:row_id AS uuid))
    ORDER BY created_at, id
    LIMIT CAST(:limit AS integer)
), ended AS MATERIALIZED (
    SELECT e.* FROM page CROSS JOIN LATERAL (SELECT * FROM events WHERE id = page.id OFFSET 0) e
    WHERE e.completed_at IS NOT NULL AND e.erased_at IS NULL
)
SELECT 'event' AS kind, e.lane_id, e.id AS row_id, CAST(e.replays AS integer) AS row_no,
       greatest(e.completed_at, e.imported_at) AS at
FROM ended e
WHERE NOT EXISTS (
    SELECT FROM seals s JOIN seal_heads h ON h.lane_id = s.lane_id
    WHERE s.row_id = e.id AND s.kind = 'event' AND s.erased_by IS NULL
      AND h.project_id = CAST(:project_id AS uuid) AND s.number <= h.number)
UNION ALL
SELECT 'receipt', e.lane_id, r.event_id, CAST(r.ordinal AS integer),
       greatest(coalesce(r.adopted_at, e.completed_at), e.imported_at)
FROM ended e
CROSS JOIN LATERAL (SELECT * FROM receipts WHERE event_id = e.id OFFSET 0) r
WHERE NOT EXISTS (
    SELECT FROM seals s JOIN seal_heads h ON h.lane_id = s.lane_id
    WHERE s.row_id = r.event_id AND s.kind = 'receipt' AND s.row_no = r.ordinal
      AND s.erased_by IS NULL
      AND h.project_id = CAST(:project_id AS uuid) AND s.number <= h.number)
UNION ALL
SELECT 'page', NULL, last.id, CAST(last.number AS integer), last.created_at
FROM (
    SELECT id, created_at, count(*) OVER () AS number FROM page
    ORDER BY created_at DESC, id DESC LIMIT 1
) last
