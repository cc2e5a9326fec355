-- The broker was down or has lost its data, so any hint may be lost. Make the lanes that were
-- queued before so overdue that the next sweeps take all of them. A limited number of lanes per
-- call; locked lanes are skipped, so adds are not blocked.
UPDATE lanes SET due_at = now() - CAST(:patience AS interval)
WHERE id IN (
    SELECT id FROM lanes
    WHERE state = 'QUEUED' AND due_at > now() - CAST(:patience AS interval)
      AND due_at <= CAST(:sent_before AS timestamptz) + CAST(:grace AS interval)
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
