-- Those of the chosen rows that have no seal, or, of events, whose last seal has another content;
-- oldest first, each with a new salt and its digest. `last_no`: replays of the event at its last seal.
WITH chosen_events AS MATERIALIZED (
    SELECT DISTINCT id FROM unnest(CAST(:event_ids AS uuid[])) AS t (id)
), chosen_versions AS MATERIALIZED (
    SELECT memory_id, low, high
    FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:lows AS integer[]), CAST(:highs AS integer[]))
        AS t (memory_id, low, high)
), {sealed_content.sql}, fresh AS MATERIALIZED (
    SELECT c.*, last.row_no AS last_no, last.digest AS last_digest, last.salt AS last_salt,
           uuid_send(gen_random_uuid()) AS salt
    FROM content c LEFT JOIN LATERAL (
        SELECT s.row_no, s.digest, s.salt FROM seals s
        WHERE s.row_id = c.row_id AND s.kind = c.kind AND s.erased_by IS NULL
          AND s.row_no BETWEEN c.line AND CASE c.kind WHEN 'event' THEN 2147483647 ELSE c.line END
          AND s.lane_id = c.lane_id
        ORDER BY s.number DESC
        LIMIT 1
    ) last ON true
    WHERE c.at IS NOT NULL
)
SELECT lane_id, kind, row_id, row_no, at, last_no, salt,
       sha256(salt || convert_to(content, 'UTF8')) AS digest
FROM fresh
WHERE last_digest IS NULL
   OR (kind = 'event'
       AND last_digest IS DISTINCT FROM sha256(last_salt || convert_to(content, 'UTF8')))
ORDER BY at, kind, row_id, row_no
