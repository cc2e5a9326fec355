-- The seals of a lane in order, each with the state of its row: same, edited, removed, erased, or
-- replayed (an event that was processed again has another seal).
WITH {sealed_content.sql}
SELECT s.number, s.kind, s.row_id, s.row_no, s.digest, s.link, s.erased_by,
       CASE WHEN s.kind = 'erasure' THEN 'same'
            WHEN s.erased_by IS NOT NULL THEN 'erased'
            WHEN c.row_id IS NULL THEN
                CASE WHEN s.kind = 'event' AND EXISTS (
                         SELECT FROM events e WHERE e.id = s.row_id AND e.replays > s.row_no)
                     THEN 'replayed' ELSE 'removed' END
            WHEN sha256(s.salt || convert_to(c.content, 'UTF8')) = s.digest THEN 'same'
            ELSE 'edited' END AS state
FROM seals s
LEFT JOIN content c ON c.row_id = s.row_id AND c.kind = s.kind AND c.row_no = s.row_no
WHERE s.lane_id = CAST(:lane_id AS uuid)
ORDER BY s.number
