-- The shadow's suggestions about memories that merge_kept is about to replace by the scope's equal
-- ones: let them name the scope's memories in their present version, or in none (0) if the suggestion
-- is outdated in the shadow. Of two equal suggestions keep the scope's with its id and a person's
-- decision, delete the shadow's copy, and let the receipts name the scope's.
WITH pair AS MATERIALIZED (
    SELECT theirs.id AS theirs, theirs.version AS version, ours.id AS ours,
           ours.version AS our_version
    FROM memories theirs JOIN memories ours USING (text_hash)
    WHERE theirs.lane_id = CAST(:shadow_lane_id AS uuid) AND theirs.state = 'ACTIVE'
      AND ours.lane_id = CAST(:lane_id AS uuid) AND ours.state = 'ACTIVE'
), suggestion AS MATERIALIZED (
    SELECT s.id, s.event_id, s.kind, s.fact_text, s.proposed_text, (
        SELECT jsonb_agg(
            CASE WHEN pair.ours IS NULL THEN t.value
                 ELSE jsonb_build_object('memory_id', pair.ours, 'version', CASE
                     WHEN CAST(t.value ->> 'version' AS integer) = pair.version
                     THEN pair.our_version ELSE 0 END)
            END ORDER BY t.place)
        FROM jsonb_array_elements(s.targets) WITH ORDINALITY AS t (value, place)
        LEFT JOIN pair ON pair.theirs = CAST(t.value ->> 'memory_id' AS uuid)
    ) AS targets
    FROM suggestions s WHERE s.lane_id = CAST(:shadow_lane_id AS uuid)
), doubled AS MATERIALIZED (
    SELECT DISTINCT ON (theirs.id) theirs.id AS theirs, theirs.event_id, ours.id AS ours
    FROM suggestion theirs JOIN suggestions ours USING (kind, targets)
    WHERE ours.lane_id = CAST(:lane_id AS uuid)
      AND ours.fact_text IS NOT DISTINCT FROM theirs.fact_text
      AND ours.proposed_text IS NOT DISTINCT FROM theirs.proposed_text
    ORDER BY theirs.id, ours.created_at, ours.id
), named AS (
    UPDATE receipts SET suggestion_id = doubled.ours
    FROM doubled
    WHERE receipts.event_id = doubled.event_id AND receipts.suggestion_id = doubled.theirs
), dropped AS (
    DELETE FROM suggestions USING doubled WHERE suggestions.id = doubled.theirs
)
UPDATE suggestions SET targets = suggestion.targets
FROM suggestion
WHERE suggestions.id = suggestion.id
  AND NOT EXISTS (SELECT FROM doubled WHERE doubled.theirs = suggestion.id)
