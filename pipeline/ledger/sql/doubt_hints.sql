-- The broker was away: any hint may have gone down with it, so every queued lane is due now.
UPDATE lanes SET due_at = now() WHERE state = 'QUEUED' AND due_at > now()
