-- Read the rows of an owner again, after they are locked, and what else belongs to them: the index
-- ids of the lanes' turns, and whether there are replays of its scopes, answers made of its memories
-- or questions that name it, and seals. Saving an answer locks the memories it was made of, so no
-- answer is added after this. The head of the project's seals is locked against the sweeper: the
-- rows that it has read stay as they are.
WITH {owned.sql}
, turn AS (
    SELECT id FROM turn_vectors WHERE event_id = ANY (ARRAY(
        SELECT id FROM events WHERE lane_id = ANY (ARRAY(SELECT id FROM mine))))
), sealed AS MATERIALIZED (
    SELECT project_id FROM seal_projects WHERE project_id = CAST(:project_id AS uuid) FOR SHARE
)
SELECT {owned_ids.sql},
       ARRAY(SELECT id FROM turn) AS turn_ids,
       EXISTS (
           SELECT FROM shadows
           WHERE project_id = CAST(:project_id AS uuid) AND CAST(:owner_id AS text) =
                 CASE CAST(:kind AS text) WHEN 'user' THEN user_id WHEN 'agent' THEN agent_id
                                          WHEN 'app' THEN app_id ELSE run_id END
       ) AS has_replays,
       EXISTS (
           SELECT FROM answer_sources WHERE lane_id = ANY (ARRAY(SELECT id FROM source))
       ) OR EXISTS (SELECT FROM naming) AS has_questions,
       EXISTS (SELECT FROM sealed) AS has_seals
