-- The page of the `known` owners, and the number of all of each kind.
)
SELECT *, (
    SELECT jsonb_object_agg(kind, owners)
    FROM (SELECT kind, count(*) AS owners FROM known GROUP BY kind) each
) AS totals
FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint) OFFSET CAST(:offset AS bigint)
