-- Queue every lane that is due: its worker died or hangs (RUNNING), its wait is over (WAITING), or
-- its hint may be lost (QUEUED; `patience` and `low_patience` spare lanes in a long queue).
-- The fence is raised only for RUNNING lanes. A late hint stays valid, and a second one does no
-- harm; raising the fence would make the hints of a backlog invalid faster than workers reach them.
-- A dead worker has no session, so its lanes are taken before their leases end: a late heartbeat is
-- enough, if `sessions` are the workers' own and not a pooler's. A server that has just started has
-- no sessions yet, so it is left out.
WITH present AS MATERIALIZED (
    SELECT split_part(application_name, ' ', 2) AS owner FROM pg_stat_activity
    WHERE application_name LIKE 'memlane %'
), due AS (
    SELECT id, state FROM lanes
    WHERE state <> 'IDLE'
      -- Stages of a later release are left to the sweepers of that release.
      AND stage = ANY (CAST(:stages AS text[]))
      AND due_at < now() + CAST(:late AS interval)
      AND CASE
          WHEN due_at < now() THEN state <> 'QUEUED'
              OR CASE WHEN coalesce(normal_seq <= settled_seq, false)
                 THEN project_id <> ALL (CAST(:patient_low AS uuid[]))
                      OR due_at < now() - CAST(:low_patience AS interval)
                 ELSE project_id <> ALL (CAST(:patient AS uuid[]))
                      OR due_at < now() - CAST(:patience AS interval) END
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
RETURNING lanes.id AS lane_id, lanes.fence, lanes.stage, lanes.project_id, due.state AS was,
          coalesce(lanes.normal_seq <= lanes.settled_seq, false) AS low
