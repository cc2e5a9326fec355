-- The broker was away or is a blank one: any hint may have gone down with it. Every queued lane is
-- overdue beyond all patience, so that the sweeps that follow spare none, whatever waits by then.
UPDATE lanes SET due_at = now() - CAST(:patience AS interval)
WHERE state = 'QUEUED' AND due_at > now() - CAST(:patience AS interval)
