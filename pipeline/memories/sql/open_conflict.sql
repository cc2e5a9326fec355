(
    -- The oldest open conflict of a row of memories, or NULL: a statement against it stands, too,
    -- and no person has resolved it, or the resolution was undone. An expired statement does not
    -- stand.
    SELECT c.id
    FROM conflict_members mine
    JOIN conflicts c ON c.id = mine.conflict_id
    LEFT JOIN events resolving
        ON resolving.id = c.resolved_by AND resolving.project_id = c.project_id
    WHERE mine.memory_id = memories.id AND mine.text_hash = memories.text_hash
      AND mine.lane_id = memories.lane_id
      AND coalesce(memories.expiration_date >= (now() AT TIME ZONE 'UTC')::date, true)
      AND (c.resolved_by IS NULL OR resolving.undone_at IS NOT NULL)
      AND EXISTS (
          SELECT FROM conflict_members other
          JOIN memories standing ON standing.id = other.memory_id
              AND standing.lane_id = other.lane_id
              AND standing.state = 'ACTIVE' AND standing.text_hash = other.text_hash
              AND coalesce(standing.expiration_date >= (now() AT TIME ZONE 'UTC')::date, true)
          WHERE other.conflict_id = c.id AND other.memory_id = mine.against_id
            AND other.against_id = mine.memory_id
          -- No part of the join above, which could then begin with all active memories.
          OFFSET 0)
    ORDER BY c.created_at, c.id
    LIMIT 1
)
