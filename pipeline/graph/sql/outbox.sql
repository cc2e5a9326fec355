-- The oldest changes that the graph server does not have.
SELECT id, project_id, entity_id, relation_id, source_id, gone FROM graph_outbox
ORDER BY id LIMIT CAST(:limit AS integer)
