-- Current relations of a scope with an entity named in the text, newest first.
SELECT r.id AS relation_id, s.name AS source, r.relation, d.name AS destination
FROM relations r
JOIN entities s ON s.id = r.source_id
JOIN entities d ON d.id = r.destination_id
WHERE r.lane_id = CAST(:lane_id AS uuid) AND r.expired_at IS NULL
  AND (CAST(:until AS timestamptz) IS NULL OR r.valid_from <= CAST(:until AS timestamptz))
  AND (strpos(CAST(:text AS text), s.name_key) > 0 OR strpos(CAST(:text AS text), d.name_key) > 0)
ORDER BY r.valid_from DESC, r.id
LIMIT CAST(:limit AS integer)
