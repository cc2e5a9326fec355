-- Projects with tamper evidence that have something to seal or to sign, and the age of their oldest
-- row without a seal, in seconds.
SELECT p.project_id, (
    SELECT CAST(extract(epoch FROM now() - q.queued_at) AS double precision) FROM seal_queue q
    WHERE q.project_id = p.project_id AND q.kind <> 'lane' ORDER BY q.queued_at LIMIT 1
) AS age_s
FROM seal_projects p
WHERE p.state <> 'off' AND (
    p.state <> 'complete' OR p.rotated_to <> CAST(:key_id AS text)
    OR p.sealed_at < now() - CAST(:idle AS interval)
    OR EXISTS (
        SELECT FROM seal_queue q WHERE q.project_id = p.project_id AND q.due_at <= now()))
ORDER BY p.sealed_at NULLS FIRST
