-- A memory that is pinned, or that a person has edited, passes this on to the shadow's copy of it.
UPDATE memories theirs SET pinned = ours.pinned, edited_at = ours.edited_at
FROM memories ours
WHERE ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
  AND (ours.pinned OR ours.edited_at IS NOT NULL)
  AND theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
  AND theirs.text_hash = ours.text_hash
