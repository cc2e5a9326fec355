-- The next rows of a project's queue.
SELECT id, kind, lane_id, row_id, row_no, covers, key_id, signature
FROM seal_queue
WHERE project_id = CAST(:project_id AS uuid) AND due_at <= now()
ORDER BY due_at
LIMIT CAST(:limit AS integer)
FOR UPDATE SKIP LOCKED
