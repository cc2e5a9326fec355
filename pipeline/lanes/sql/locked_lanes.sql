-- Ids of the given lanes that another transaction has locked. Does not wait, and keeps no lock.
WITH unlocked AS (
    SELECT id FROM lanes
    WHERE id = ANY (CAST(:lane_ids AS uuid[]))
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT id FROM lanes
WHERE id = ANY (CAST(:lane_ids AS uuid[])) AND id NOT IN (SELECT id FROM unlocked)
