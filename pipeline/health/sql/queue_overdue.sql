-- Make overdue lanes so late that the next sweep takes them, also those of busy projects.
UPDATE lanes SET due_at = now() - interval '1 hour'
WHERE due_at < now() - CAST(:overdue AS interval) AND due_at > now() - interval '1 hour'
