-- Rows of a lane without a seal: `late` ones are older than the last pass, which would have sealed
-- them.
WITH {sealed_content.sql}
SELECT c.kind, c.row_id, c.row_no,
       coalesce(c.at <= CAST(:since AS timestamptz), false) AS late
FROM content c
WHERE c.at IS NOT NULL AND NOT EXISTS (
    SELECT FROM seals s
    WHERE s.row_id = c.row_id AND s.kind = c.kind AND s.row_no = c.row_no
      AND s.lane_id = CAST(:lane_id AS uuid) AND s.erased_by IS NULL)
ORDER BY c.at, c.kind, c.row_id, c.row_no
LIMIT CAST(:limit AS integer)
