-- Heartbeat of one worker: renew all its leases in one statement. Locked lanes are skipped, because
-- they would delay all other leases; the sweeper skips them, too.
UPDATE lanes SET due_at = now() + CAST(:lease AS interval)
WHERE id IN (
    SELECT lanes.id
    FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:owners AS uuid[]))
        AS lease (lane_id, fence, owner)
    JOIN lanes ON lanes.id = lease.lane_id AND lanes.fence = lease.fence
        AND lanes.owner = lease.owner
    WHERE lanes.state = 'RUNNING'
    ORDER BY lanes.id
    FOR UPDATE OF lanes SKIP LOCKED
)
RETURNING id, fence, owner
