(
    -- The oldest open suggestion about a row of memories, or NULL: it would change this version of
    -- the memory, or it was withheld from the fact that the memory states.
    SELECT coalesce(
        (
            SELECT s.id FROM suggestions s
            WHERE s.state = 'OPEN' AND s.targets @> jsonb_build_array(jsonb_build_object(
                'memory_id', memories.id, 'version', memories.version))
            ORDER BY s.created_at, s.id
            LIMIT 1
        ),
        (
            SELECT s.id FROM suggestions s
            WHERE s.state = 'OPEN' AND s.event_id = memories.event_id
              AND s.lane_id = memories.lane_id AND s.fact_text = memories.text
              AND EXISTS (
                  SELECT FROM jsonb_to_recordset(s.targets) AS t (memory_id uuid, version integer)
                  JOIN memories target ON target.id = t.memory_id AND target.lane_id = s.lane_id
                      AND target.version = t.version AND target.state = 'ACTIVE')
            ORDER BY s.created_at, s.id
            LIMIT 1
        )
    )
    WHERE memories.state = 'ACTIVE'
)
