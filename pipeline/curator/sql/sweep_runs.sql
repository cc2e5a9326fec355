-- Queue the runs that are due, and raise their fences: a worker whose lease has ended writes nothing
-- from here on. At most :limit runs are under way at a time, so that adds find free workers.
UPDATE curator_runs SET
    state = 'QUEUED', fence = fence + 1, due_at = now() + CAST(:grace AS interval)
WHERE id IN (
    SELECT id FROM curator_runs WHERE due_at <= now()
    ORDER BY due_at
    LIMIT greatest(0, CAST(:limit AS integer)
                      - (SELECT count(*) FROM curator_runs WHERE due_at > now()))
    FOR UPDATE SKIP LOCKED
)
RETURNING id, fence
