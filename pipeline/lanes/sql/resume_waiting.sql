-- Make lanes that wait for a model or a store due now: a few to probe it, and more once it answers.
UPDATE lanes SET due_at = now()
WHERE id IN (
    SELECT id FROM lanes
    WHERE state = 'WAITING' AND wait_code = CAST(:code AS text) AND due_at > now()
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
