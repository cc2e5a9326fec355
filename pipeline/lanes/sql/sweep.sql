-- Queue every lane whose time is up, for any reason: a worker died or hangs (RUNNING), a wait is over
-- (WAITING), a hint may be lost (QUEUED; with patience for those that stand in a long queue).
-- Only a dead worker's fence is raised: a hint that is merely late stays good, and its double does
-- no harm. Raising it then would void every hint of a backlog faster than workers reach them.
-- A dead worker has no session left, so its lanes need not wait for their leases to run out: a late
-- heartbeat is enough, if `sessions` belong to the workers and not to a pooler. A server that has just
-- started has no sessions yet.
WITH present AS MATERIALIZED (
    SELECT split_part(application_name, ' ', 2) AS owner FROM pg_stat_activity
    WHERE application_name LIKE 'memlane %'
), due AS (
    SELECT id, state FROM lanes
    WHERE state <> 'IDLE'
      -- A stage of a later release is for that release's sweepers.
      AND stage = ANY (CAST(:stages AS text[]))
      AND due_at < now() + CAST(:late AS interval)
      AND CASE
          WHEN due_at < now() THEN state <> 'QUEUED' OR project_id <> ALL (CAST(:patient AS uuid[]))
                                   OR due_at < now() - CAST(:patience AS interval)
          ELSE CAST(:sessions AS boolean) AND state = 'RUNNING' AND owner::text NOT IN (SELECT owner FROM present)
               AND pg_postmaster_start_time() < now() - CAST(:lease AS interval)
          END
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
UPDATE lanes SET
    state = 'QUEUED',
    fence = lanes.fence + CASE due.state WHEN 'RUNNING' THEN 1 ELSE 0 END,
    owner = NULL,
    due_at = now() + CAST(:grace AS interval)
FROM due WHERE lanes.id = due.id
RETURNING lanes.id AS lane_id, lanes.fence, lanes.stage, lanes.project_id, due.state AS was
