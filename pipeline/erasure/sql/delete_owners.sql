-- Delete the registered name and metadata of the owner, and those of its agents, apps and runs
-- whose lanes are all erased. `narrower`: the kinds that belong to this kind of owner.
WITH gone AS (
    SELECT CAST(:kind AS text) AS kind, CAST(:owner_id AS text) AS id
    UNION
    SELECT 'agent', mine.agent_id FROM lanes mine
    WHERE mine.id = ANY (CAST(:lane_ids AS uuid[])) AND 'agent' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = mine.project_id AND l.agent_id = mine.agent_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])))
    UNION
    SELECT 'app', mine.app_id FROM lanes mine
    WHERE mine.id = ANY (CAST(:lane_ids AS uuid[])) AND 'app' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = mine.project_id AND l.app_id = mine.app_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])))
    UNION
    SELECT 'run', mine.run_id FROM lanes mine
    WHERE mine.id = ANY (CAST(:lane_ids AS uuid[])) AND 'run' = ANY (CAST(:narrower AS text[]))
      AND NOT EXISTS (
          SELECT FROM lanes l
          WHERE l.project_id = mine.project_id AND l.run_id = mine.run_id
            AND l.id <> ALL (CAST(:lane_ids AS uuid[])))
)
DELETE FROM owners USING gone
WHERE owners.project_id = CAST(:project_id AS uuid) AND owners.kind = gone.kind
  AND owners.id = gone.id
