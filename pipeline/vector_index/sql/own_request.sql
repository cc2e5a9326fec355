-- Have a collection made for this scope, unless another index is live.
INSERT INTO own_collections (name, project_id, user_id, agent_id, app_id, run_id, state)
SELECT CAST(:name AS text), CAST(:project_id AS uuid), CAST(:user_id AS text),
       CAST(:agent_id AS text), CAST(:app_id AS text), CAST(:run_id AS text), 'FILLING'
WHERE NOT EXISTS (
    SELECT FROM vector_indexes i WHERE i.state = 'LIVE' AND i.name <> CAST(:index AS text)
)
ON CONFLICT DO NOTHING
RETURNING name
