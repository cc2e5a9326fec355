-- Add accesses of memories. Rows are locked in the order of their ids, so that two processes that
-- write at once do not deadlock. A memory that is deleted by now is left out; the lock on the others
-- holds until the commit, so the reference stays valid.
WITH counted AS (
    SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS int[])) AS c (memory_id, count)
), present AS (
    SELECT m.id, m.project_id, c.count
    FROM memories m JOIN counted c ON c.memory_id = m.id
    ORDER BY m.id
    FOR KEY SHARE OF m
)
INSERT INTO memory_accesses AS a (memory_id, project_id, accesses, last_at)
SELECT id, project_id, count, now() FROM present ORDER BY id
ON CONFLICT (memory_id) DO UPDATE SET accesses = a.accesses + excluded.accesses, last_at = excluded.last_at
