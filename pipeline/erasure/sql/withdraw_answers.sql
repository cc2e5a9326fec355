-- Exports and summaries over several scopes may contain erased memories, or name the owner in their
-- filters; those of other single scopes cannot. Finished answers are deleted. Unfinished answers
-- lose their saved outputs, and the next worker computes them again. Questions that name the owner
-- are cleared, and cancelled if they have not ended.
WITH asked AS (
    SELECT e.id, e.batch_id, e.lane_id, e.status IN ('PENDING', 'RUNNING') AS open,
           jsonb_path_exists(e.options, '$.** ? (@ == $id)',
                             jsonb_build_object('id', CAST(:owner_id AS text))) AS named
    FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE e.project_id = CAST(:project_id AS uuid) AND e.event_type <> 'ADD'
      AND CASE CAST(:kind AS text) WHEN 'user' THEN l.user_id WHEN 'agent' THEN l.agent_id
                                   WHEN 'app' THEN l.app_id ELSE l.run_id END IS NULL
), withdrawn AS (
    UPDATE stage_runs SET output = NULL
    WHERE batch_id IN (SELECT batch_id FROM asked WHERE NOT open)
), unsaved AS (
    DELETE FROM stage_runs WHERE batch_id IN (SELECT batch_id FROM asked WHERE open)
), unasked AS (
    UPDATE events SET
        options = '{}', note = CAST(:note AS text), erased_at = now(),
        status = CASE WHEN asked.open THEN 'CANCELLED' ELSE status END,
        failure_code = CASE WHEN asked.open THEN 'CANCELLED' ELSE failure_code END,
        completed_at = coalesce(completed_at, now())
    FROM asked WHERE events.id = asked.id AND asked.named
)
UPDATE lanes SET state = 'QUEUED', fence = fence + 1, owner = NULL, due_at = now()
WHERE id IN (SELECT lane_id FROM asked WHERE open) AND state = 'RUNNING'
