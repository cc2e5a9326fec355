-- Seals of lanes with numbers after `low` up to `high`, each with the state of its row: same, differs,
-- missing or erased.
WITH page AS MATERIALIZED (
    SELECT s.*
    FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:lows AS bigint[]), CAST(:highs AS bigint[]))
        AS t (lane_id, low, high)
    CROSS JOIN LATERAL (
        SELECT * FROM seals
        WHERE lane_id = t.lane_id AND number > t.low AND number <= t.high OFFSET 0
    ) s
), chosen_events AS MATERIALIZED (
    SELECT DISTINCT row_id AS id FROM page
    WHERE kind IN ('event', 'receipt') AND erased_by IS NULL
), chosen_versions AS MATERIALIZED (
    SELECT DISTINCT row_id AS memory_id, row_no AS low, row_no AS high FROM page
    WHERE kind = 'history' AND erased_by IS NULL
), {sealed_content.sql}
SELECT p.lane_id, p.number, p.kind, p.row_id, p.row_no, p.digest, p.link, p.erased_by, p.covers,
       CASE WHEN p.kind IN ('erasure', 'replay') THEN 'same'
            WHEN p.erased_by IS NOT NULL THEN 'erased'
            WHEN c.row_id IS NULL THEN 'missing'
            WHEN sha256(p.salt || convert_to(c.content, 'UTF8')) = p.digest THEN 'same'
            ELSE 'differs' END AS state
FROM page p
LEFT JOIN content c ON c.lane_id = p.lane_id AND c.row_id = p.row_id AND c.kind = p.kind
    AND c.line = CASE p.kind WHEN 'event' THEN 0 ELSE p.row_no END
ORDER BY p.lane_id, p.number
