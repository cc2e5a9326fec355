-- Rows of an import that are stored already: by id, entities by key, and active memories of the
-- scope by the hash of their text.
SELECT 'id' AS kind, id, CAST(NULL AS text) AS name, CAST(NULL AS bytea) AS digest FROM (
    SELECT id FROM events WHERE id = ANY (CAST(:ids AS uuid[]))
    UNION ALL SELECT id FROM memories WHERE id = ANY (CAST(:ids AS uuid[]))
    UNION ALL SELECT id FROM past_states WHERE id = ANY (CAST(:ids AS uuid[]))
    UNION ALL SELECT id FROM relations WHERE id = ANY (CAST(:ids AS uuid[]))
    UNION ALL SELECT id FROM conflicts WHERE id = ANY (CAST(:ids AS uuid[]))
) rows
UNION ALL
SELECT 'key', NULL, name_key, NULL FROM entities
WHERE lane_id = CAST(:lane_id AS uuid) AND name_key = ANY (CAST(:keys AS text[]))
UNION ALL
SELECT 'text', id, NULL, text_hash FROM memories
WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
  AND text_hash = ANY (CAST(:hashes AS bytea[]))
