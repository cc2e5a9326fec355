-- Names of relations that several scopes of a project use, in alphabetical order. One look-up in the
-- index for each name (a loose index scan). A name that one scope alone uses may tell about its user.
WITH RECURSIVE name AS (
    (SELECT relation FROM relations WHERE project_id = CAST(:project_id AS uuid)
     ORDER BY relation LIMIT 1)
    UNION ALL
    SELECT (SELECT r.relation FROM relations r
             WHERE r.project_id = CAST(:project_id AS uuid) AND r.relation > name.relation
             ORDER BY r.relation LIMIT 1)
    FROM name WHERE name.relation IS NOT NULL
), counted AS (
    SELECT relation,
           (SELECT lane_id FROM relations r
             WHERE r.project_id = CAST(:project_id AS uuid) AND r.relation = name.relation
             ORDER BY lane_id LIMIT 1) AS first_lane,
           (SELECT lane_id FROM relations r
             WHERE r.project_id = CAST(:project_id AS uuid) AND r.relation = name.relation
             ORDER BY lane_id DESC LIMIT 1) AS last_lane
    FROM (SELECT relation FROM name WHERE relation IS NOT NULL LIMIT CAST(:most AS integer)) name
)
SELECT relation FROM counted WHERE first_lane <> last_lane
LIMIT CAST(:limit AS integer)
