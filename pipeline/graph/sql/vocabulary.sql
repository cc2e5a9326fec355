-- Names of relations that several scopes of a project use, in alphabetical order. A loose index
-- scan: one look-up for each name, and one for the first row of another scope behind it. All sort
-- by name and scope, so that only the index of the project's names serves them. A name that one
-- scope alone uses may tell about its user.
WITH RECURSIVE name AS (
    (SELECT relation, lane_id FROM relations WHERE project_id = CAST(:project_id AS uuid)
     ORDER BY relation, lane_id LIMIT 1)
    UNION ALL
    SELECT following.relation, following.lane_id
    FROM name CROSS JOIN LATERAL (
        SELECT r.relation, r.lane_id FROM relations r
        WHERE r.project_id = CAST(:project_id AS uuid) AND r.relation > name.relation
        ORDER BY r.relation, r.lane_id LIMIT 1
    ) following
), counted AS (
    SELECT name.relation, (
        SELECT r.relation FROM relations r
        WHERE r.project_id = CAST(:project_id AS uuid)
          AND (r.relation, r.lane_id) > (name.relation, name.lane_id)
        ORDER BY r.relation, r.lane_id LIMIT 1) AS following
    FROM (SELECT relation, lane_id FROM name LIMIT CAST(:most AS integer)) name
)
SELECT relation FROM counted WHERE following = relation
LIMIT CAST(:limit AS integer)
