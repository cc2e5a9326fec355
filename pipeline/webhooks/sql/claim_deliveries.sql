-- Claim due deliveries for one process, in round-robin order: the first of each project before the
-- second of any project, and within a project the first of each webhook. The process's running
-- tries count as turns taken, so that a slow receiver delays only its own deliveries.
-- A try is counted before it is made, so a process that dies during a try has used it up.
WITH RECURSIVE {with_open_deliveries.sql}, busy AS (
    SELECT w.id, w.project_id, count(*) AS tries
    FROM unnest(CAST(:under_way AS uuid[])) AS one (id) JOIN webhooks w USING (id)
    GROUP BY w.id, w.project_id
), hook AS (
    SELECT w.id, w.project_id, coalesce(busy.tries, 0) AS tries,
           CASE WHEN w.id = ANY (CAST(:slow AS uuid[])) THEN 1 ELSE CAST(:each AS integer) END AS most
    FROM owing JOIN webhooks w ON w.id = owing.webhook_id LEFT JOIN busy ON busy.id = w.id
    WHERE w.is_active
), due AS (
    SELECT next.id, next.due_at, hook.project_id,
           hook.tries + row_number() OVER (PARTITION BY hook.id ORDER BY next.due_at) AS turn
    FROM hook CROSS JOIN LATERAL (
        SELECT d.id, d.due_at FROM webhook_deliveries d
        WHERE d.webhook_id = hook.id AND d.due_at <= now()
        ORDER BY d.due_at
        LIMIT greatest(hook.most - hook.tries, 0)
    ) next
), ranked AS (
    SELECT due.id, due.due_at, row_number() OVER (
        PARTITION BY due.project_id ORDER BY due.turn, due.due_at
    ) + (
        SELECT coalesce(sum(busy.tries), 0) FROM busy WHERE busy.project_id = due.project_id
    ) AS turn
    FROM due
), share AS (
    SELECT id FROM ranked
    WHERE turn <= CAST(:each_project AS integer)
    ORDER BY turn, due_at
    LIMIT CAST(:limit AS integer)
), taken AS (
    SELECT id FROM webhook_deliveries
    WHERE id IN (SELECT id FROM share) AND due_at <= now()
    FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries d SET due_at = now() + CAST(:lease AS interval), attempts = attempts + 1
FROM taken, webhooks w
WHERE d.id = taken.id AND w.id = d.webhook_id
RETURNING d.id, d.webhook_id, d.body, d.attempts, w.url, w.secret,
          extract(epoch FROM now())::bigint AS sent_at
