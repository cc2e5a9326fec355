-- The active memories of a large scope that are worth comparing with facts, at most :limit: those
-- with the ids, with one of the slots, and with most of the terms. `number`: all of the scope.
SELECT m.id, array_to_string(m.terms, ' ') AS terms, m.slot,
       CASE m.embedder WHEN CAST(:embedder AS text) THEN m.embedding END AS embedding,
       (SELECT count(*) FROM memories
        WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE') AS number
FROM memories m
WHERE m.lane_id = CAST(:lane_id AS uuid) AND m.state = 'ACTIVE' AND m.memory_type <> 'procedural' AND (
    m.id = ANY (CAST(:ids AS uuid[])) OR m.slot = ANY (CAST(:slots AS text[]))
    OR m.terms && CAST(:terms AS text[])
)
ORDER BY m.id = ANY (CAST(:ids AS uuid[])) DESC,
         coalesce(m.slot = ANY (CAST(:slots AS text[])), false) DESC,
         (SELECT count(*) FROM unnest(m.terms) AS t (term)
          WHERE t.term = ANY (CAST(:terms AS text[]))) DESC,
         m.id
LIMIT CAST(:limit AS integer)
