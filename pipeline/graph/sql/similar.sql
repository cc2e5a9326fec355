-- Nodes of a scope that have one of these words in their name, last mentioned first.
SELECT id, name, name_key, coalesce(plain_name, name_key) AS plain, kind, qualifier, root_id AS root,
       mentions
FROM entities
WHERE lane_id = CAST(:lane_id AS uuid)
  AND string_to_array(coalesce(plain_name, name_key), ' ') && CAST(:words AS text[])
ORDER BY mentioned_at DESC NULLS LAST, id
LIMIT CAST(:limit AS integer)
