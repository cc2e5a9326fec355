-- The rows of a lane without a seal, oldest first, each with a new salt and its digest. `since`:
-- only rows after it, unless it is NULL.
WITH {sealed_content.sql}, fresh AS MATERIALIZED (
    SELECT c.*, uuid_send(gen_random_uuid()) AS salt FROM content c
    WHERE c.at IS NOT NULL AND (CAST(:since AS timestamptz) IS NULL OR c.at > CAST(:since AS timestamptz))
      AND NOT EXISTS (
          SELECT FROM seals s
          WHERE s.row_id = c.row_id AND s.kind = c.kind AND s.row_no = c.row_no
            AND s.lane_id = CAST(:lane_id AS uuid) AND s.erased_by IS NULL)
)
SELECT kind, row_id, row_no, salt, sha256(salt || convert_to(content, 'UTF8')) AS digest
FROM fresh
ORDER BY at, kind, row_id, row_no
LIMIT CAST(:limit AS integer)
