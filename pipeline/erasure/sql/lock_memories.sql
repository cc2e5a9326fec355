-- Lock the memories of erased lanes, which people change without a lane. Also returns the index ids
-- of the lanes' turns.
WITH memory AS MATERIALIZED (
    SELECT id FROM memories WHERE lane_id = ANY (CAST(:lane_ids AS uuid[])) ORDER BY id FOR UPDATE
)
SELECT ARRAY(SELECT id FROM memory) AS memory_ids, ARRAY(
    SELECT id FROM turn_vectors WHERE event_id = ANY (ARRAY(
        SELECT id FROM events WHERE lane_id = ANY (CAST(:lane_ids AS uuid[]))))
) AS turn_ids
