-- The broker was away or is a blank one: any hint may have gone down with it. Lanes queued before that
-- are overdue beyond all patience, so that the sweeps that follow spare none. A share at a time, and
-- none that is locked: adds into these lanes go on.
UPDATE lanes SET due_at = now() - CAST(:patience AS interval)
WHERE id IN (
    SELECT id FROM lanes
    WHERE state = 'QUEUED' AND due_at > now() - CAST(:patience AS interval)
      AND due_at <= CAST(:told_before AS timestamptz) + CAST(:grace AS interval)
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
