-- Which of these lanes somebody else holds. None is waited for, and none stays locked.
WITH unlocked AS (
    SELECT id FROM lanes
    WHERE id = ANY (CAST(:lane_ids AS uuid[]))
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT id FROM lanes
WHERE id = ANY (CAST(:lane_ids AS uuid[])) AND id NOT IN (SELECT id FROM unlocked)
