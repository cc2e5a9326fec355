-- Delete states of memories that were replaced before their retention time.
DELETE FROM past_states
WHERE ctid = ANY (ARRAY(
    SELECT old.ctid
    FROM projects
    CROSS JOIN LATERAL (
        SELECT ctid FROM past_states
        WHERE past_states.project_id = projects.id
          AND past_states.replaced_at < now() - CAST(:age AS interval)
        ORDER BY past_states.replaced_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ) AS old
    LIMIT CAST(:limit AS integer)
))
