-- Active memories of a scope that a batch names by id, repeats by text, or gives another value of a
-- single-valued attribute, each in a row with `forgotten` and `today`; at least one row. UNION and not OR: each
-- part uses its own index, and OR would read the whole scope.
-- `forgotten`: the texts that an event may not learn again, because a person has deleted them after
-- the event was accepted: texts of the batch, and those that the event stored in an earlier run.
WITH deleted AS (
    SELECT e.id AS event_id, m.text
    FROM events e JOIN memories m ON m.lane_id = e.lane_id
    WHERE e.id = ANY (CAST(:event_ids AS uuid[]))
      AND m.state = 'RETIRED' AND m.forgotten_at > e.created_at
      AND m.text_hash = ANY (CAST(:hashes AS bytea[]))
    UNION
    SELECT e.id, h.new_text
    FROM events e JOIN memory_history h ON h.event_id = e.id
    JOIN memories m ON m.id = h.memory_id AND m.lane_id = e.lane_id
    WHERE e.id = ANY (CAST(:event_ids AS uuid[]))
      AND m.state = 'RETIRED' AND m.forgotten_at > e.created_at AND h.new_text IS NOT NULL
)
SELECT before.forgotten, before.today, named.*
FROM (
    SELECT jsonb_agg(jsonb_build_array(event_id, text)) AS forgotten,
           (now() AT TIME ZONE 'UTC')::date AS today
    FROM deleted
) before
LEFT JOIN LATERAL (
    SELECT stored.* FROM (
        SELECT unnest(CAST(:ids AS uuid[])) AS id
        UNION
        SELECT id FROM memories
        WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
          AND text_hash = ANY (CAST(:hashes AS bytea[]))
        UNION
        SELECT id FROM memories
        WHERE lane_id = CAST(:lane_id AS uuid) AND state = 'ACTIVE'
          AND slot = ANY (CAST(:slots AS text[]))
    ) wanted
    -- OFFSET 0: one look-up for each id, also while the table has no statistics yet; else each
    -- memory of the scope is read, with its conflict.
    CROSS JOIN LATERAL (
        SELECT memories.*, {open_conflict.sql} AS conflict_id
        FROM memories WHERE memories.id = wanted.id OFFSET 0
    ) stored
    WHERE stored.lane_id = CAST(:lane_id AS uuid) AND stored.state = 'ACTIVE'
) named ON true
