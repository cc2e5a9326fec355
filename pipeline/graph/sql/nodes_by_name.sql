-- Nodes of a scope with one of these names, or one of these ids;
-- the one that was mentioned last comes last.
SELECT id, name, name_key, coalesce(plain_name, name_key) AS plain, kind, qualifier, root_id AS root,
       mentions
FROM entities
WHERE lane_id = CAST(:lane_id AS uuid)
  AND (coalesce(plain_name, name_key) = ANY (CAST(:names AS text[]))
       OR id = ANY (CAST(:ids AS uuid[])))
ORDER BY mentioned_at NULLS FIRST, id
