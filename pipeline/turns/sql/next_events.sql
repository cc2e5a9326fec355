-- The next events of these lanes, by lane and seq, after the event `seq` of the lane `lane_id`, each
-- with its number of turns.
SELECT e.id, lane.id AS lane_id, e.seq,
       (SELECT count(*) FROM turn_vectors t WHERE t.event_id = e.id) AS turns
FROM unnest(CAST(:lane_ids AS uuid[])) AS lane (id)
CROSS JOIN LATERAL (
    SELECT id, seq FROM events
    WHERE events.lane_id = lane.id
      AND events.seq > CASE WHEN lane.id = CAST(:lane_id AS uuid) THEN CAST(:seq AS bigint) ELSE 0 END
    ORDER BY seq
    LIMIT CAST(:limit AS integer)
) AS e
WHERE lane.id >= CAST(:lane_id AS uuid)
ORDER BY lane.id, e.seq
LIMIT CAST(:limit AS integer)
