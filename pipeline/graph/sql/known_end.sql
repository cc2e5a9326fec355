-- The end of relation `r` as it was known at `as_of`, or is known now: one row. Ends that were withdrawn
-- or changed since are in `past_ends`, each with the time of that change.
SELECT e.valid_to, e.expired_at, e.ended_by FROM (
    SELECT p.valid_to, p.expired_at, p.ended_by, p.replaced_at
    FROM jsonb_to_recordset(r.past_ends) AS p (
        valid_to timestamptz, expired_at timestamptz, ended_by uuid, replaced_at timestamptz
    )
    WHERE p.replaced_at > CAST(:as_of AS timestamptz)
    UNION ALL
    SELECT r.valid_to, r.expired_at, r.ended_by, 'infinity'
) e
ORDER BY e.replaced_at
LIMIT 1
