-- Active memories of a scope that were said after a time and have all words of a lookup, those said
-- first: without plans, longer texts, what a person wrote or edited, and what has expired. Nothing
-- for a lookup whose words more than `most` memories have: some of them would show a wrong order.
-- See the function word_keys: as in the lookups of searches, no other index than that of the words
-- can read them; its keys are hashes, so the owner is compared behind it.
WITH lookup AS MATERIALIZED (
    SELECT array_agg(
        hashtextextended(k.key, hashtextextended(CAST(CAST(:project_id AS uuid) AS text), 0))
    ) AS wanted
    FROM unnest(CAST(:lookups AS integer[]), CAST(:keys AS text[])) AS k (lookup, key)
    GROUP BY k.lookup
)
SELECT DISTINCT n.id, n.text, n.said_at, n.valid_from, n.event_id, n.speaker
FROM lookup CROSS JOIN LATERAL (
    WITH named AS MATERIALIZED (
        SELECT m.* FROM memories m
        WHERE word_keys(m.project_id, m.lane_id, m.user_id, m.agent_id, m.app_id, m.run_id, m.terms)
              @> lookup.wanted
          AND m.state = 'ACTIVE'
        LIMIT CAST(:most AS integer) + 1
    )
    SELECT m.* FROM named m
    WHERE (SELECT count(*) FROM named) <= CAST(:most AS integer)
) n
WHERE n.project_id = CAST(:project_id AS uuid) AND n.lane_id = CAST(:lane_id AS uuid)
  AND n.said_at > CAST(:since AS timestamptz) AND n.kind <> 'plan'
  AND n.event_id IS NOT NULL AND n.edited_at IS NULL AND length(n.text) <= CAST(:longest AS integer)
  AND (n.expiration_date IS NULL OR n.expiration_date >= (now() AT TIME ZONE 'UTC')::date)
ORDER BY n.said_at, n.id
LIMIT CAST(:limit AS integer)
