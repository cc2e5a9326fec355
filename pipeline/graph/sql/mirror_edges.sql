-- Relations as a graph server stores them.
SELECT id, project_id, source_id, relation, destination_id, valid_from, valid_to, created_at,
       expired_at, past_ends, event_id, memory_id
FROM relations WHERE id = ANY (CAST(:ids AS uuid[]))
