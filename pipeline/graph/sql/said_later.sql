-- Statements of a scope that were said after a time and have all terms of a name, the first ones
-- first: those of the active memories, also their earlier ones, and those that were superseded when
-- they arrived, under the memory that superseded them. Not what a person wrote over, or an undo took
-- back. No plans.
WITH lookup AS MATERIALIZED (
    SELECT array_agg(
        hashtextextended(k.key, hashtextextended(CAST(CAST(:project_id AS uuid) AS text), 0))
    ) AS wanted
    FROM unnest(CAST(:lookups AS integer[]), CAST(:keys AS text[])) AS k (lookup, key)
    GROUP BY k.lookup
), naming AS MATERIALIZED (
    SELECT DISTINCT m.id FROM lookup CROSS JOIN LATERAL (
        SELECT n.id FROM memories n
        WHERE word_keys(n.project_id, n.lane_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.terms)
              @> lookup.wanted
          AND n.state = 'ACTIVE' AND n.lane_id = CAST(:lane_id AS uuid)
          AND n.said_at > CAST(:since AS timestamptz)
        ORDER BY n.said_at
        LIMIT CAST(:limit AS integer)
    ) m
), stated AS (
    SELECT m.id AS memory_id, m.text, m.said_at, m.valid_from, m.event_id, m.subject, m.attribute
    FROM naming JOIN memories m USING (id)
    WHERE m.kind <> 'plan'
    UNION ALL
    SELECT h.memory_id, h.new_text, h.said_at, h.valid_from, h.event_id,
           h.structure ->> 'subject', h.structure ->> 'attribute'
    FROM naming CROSS JOIN LATERAL (
        SELECT max(p.version) FILTER (WHERE p.event_id IS NULL OR p.undoes IS NOT NULL) AS written,
               max(p.version) AS newest
        FROM memory_history p WHERE p.memory_id = naming.id
    ) own
    JOIN memory_history h ON h.memory_id = naming.id
    WHERE h.version > coalesce(own.written, 0) AND h.version < own.newest
      AND h.said_at > CAST(:since AS timestamptz)
      AND coalesce(h.structure ->> 'kind', '') <> 'plan'
    UNION ALL
    SELECT (SELECT a.id FROM memories a WHERE a.id = r.superseded_by AND a.state = 'ACTIVE'),
           r.text, r.said_at, r.valid_from, r.event_id, r.subject, r.attribute
    FROM (
        SELECT * FROM memories
        WHERE lane_id = CAST(:lane_id AS uuid) AND superseded_by IS NOT NULL
          AND state = 'RETIRED' AND said_at > CAST(:since AS timestamptz)
        ORDER BY said_at
        LIMIT CAST(:limit AS integer)
    ) r
    WHERE r.version = 1 AND r.kind <> 'plan' AND r.forgotten_at IS NULL
)
SELECT * FROM stated ORDER BY said_at, text
LIMIT CAST(:limit AS integer)
