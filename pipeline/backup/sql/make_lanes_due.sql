-- Make all lanes with work due now. The sweeper queues them, raises the fence of those that were
-- RUNNING, and sends the hints.
UPDATE lanes SET due_at = now() - interval '1 hour' WHERE due_at IS NOT NULL
