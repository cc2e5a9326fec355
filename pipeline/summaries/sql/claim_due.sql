-- Take the scopes whose next version is due. They are due again after the lease, so a lost task is
-- published again; two workers at one version do no harm, because only one of them is stored.
UPDATE summary_states SET due_at = now() + CAST(:lease AS interval)
WHERE lane_id IN (
    SELECT lane_id FROM summary_states
    WHERE due_at <= now()
    ORDER BY due_at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
RETURNING lane_id, project_id
