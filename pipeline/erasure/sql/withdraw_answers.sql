-- Withdraw the answers of exports and summaries that were made of the erased lanes, and the
-- questions and deletes that name the owner. Ended answers are deleted. Open ones lose their saved
-- output and go back to their first stage. Events that name the owner are cleared, and cancelled if
-- they have not ended. The lanes of open ones are locked by the caller.
WITH affected AS MATERIALIZED (
    SELECT e.id, e.batch_id, e.lane_id, e.completed_at IS NULL AS open, false AS named
    FROM answer_sources s JOIN events e ON e.batch_id = s.batch_id
    WHERE s.lane_id = ANY (CAST(:sources AS uuid[]))
    UNION ALL
    SELECT e.id, e.batch_id, e.lane_id, e.completed_at IS NULL, true
    FROM events e
    WHERE owners_named(e.project_id, e.options) @> ARRAY[CAST(:owner AS text)]
      AND e.event_type <> 'ADD' AND e.event_type <> 'DRY_RUN'
), withdrawn AS (
    UPDATE stage_runs SET output = NULL
    WHERE batch_id = ANY (ARRAY(SELECT batch_id FROM affected WHERE NOT open))
      AND output IS NOT NULL
), unsaved AS (
    DELETE FROM stage_runs
    WHERE batch_id = ANY (ARRAY(SELECT batch_id FROM affected WHERE open))
), sources AS (
    DELETE FROM answer_sources WHERE batch_id = ANY (ARRAY(SELECT batch_id FROM affected))
), about AS (
    SELECT id, bool_or(open) AS open, bool_or(named) AS named FROM affected GROUP BY id
), withdrawn_event AS (
    UPDATE events SET
        note = CASE WHEN about.named THEN CAST(:erased AS text) ELSE CAST(:withdrawn AS text) END,
        options = CASE WHEN about.named THEN '{}' ELSE options END,
        erased_at = CASE WHEN about.named THEN now() ELSE erased_at END,
        status = CASE WHEN about.open THEN 'CANCELLED' ELSE status END,
        failure_code = CASE WHEN about.open THEN 'CANCELLED' ELSE failure_code END,
        completed_at = coalesce(completed_at, now())
    FROM about
    WHERE events.id = about.id AND (about.named OR NOT about.open)
), back AS (
    UPDATE lanes SET
        state = 'QUEUED', stage = 'extract', fence = fence + 1, owner = NULL, due_at = now()
    WHERE id = ANY (ARRAY(SELECT lane_id FROM affected WHERE open))
      AND batch_id = ANY (ARRAY(SELECT batch_id FROM affected WHERE open)) AND state = 'RUNNING'
)
SELECT id FROM about WHERE named
