-- The shadow's conflicts between the same statements as one of the scope's, after merge_kept. Keep
-- the scope's conflict with its id and a person's decision, delete the shadow's copy, and let the
-- receipts name the scope's.
WITH doubled AS MATERIALIZED (
    SELECT DISTINCT ON (theirs.id) theirs.id AS theirs, ours.id AS ours
    FROM conflicts theirs
    JOIN conflict_members one ON one.conflict_id = theirs.id
    JOIN conflict_members same USING (memory_id, against_id, text_hash)
    JOIN conflicts ours ON ours.id = same.conflict_id
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND ours.lane_id = CAST(:lane_id AS uuid)
      AND NOT EXISTS (
          SELECT FROM conflict_members other
          WHERE other.conflict_id = theirs.id AND NOT EXISTS (
              SELECT FROM conflict_members known
              WHERE known.conflict_id = ours.id AND known.memory_id = other.memory_id
                AND known.against_id = other.against_id AND known.text_hash = other.text_hash))
    ORDER BY theirs.id, ours.created_at, ours.id
), renamed AS (
    UPDATE receipts SET conflict_id = doubled.ours
    FROM doubled, events c
    WHERE c.project_id = CAST(:shadow_id AS uuid) AND receipts.event_id = c.id
      AND receipts.conflict_id = doubled.theirs
)
DELETE FROM conflicts USING doubled WHERE conflicts.id = doubled.theirs
