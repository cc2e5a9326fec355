-- The owners of these kinds with this id, as in owners.sql, private runs too.
WITH {entries_of_owners.sql}, candidate AS (
    SELECT kind, CAST(:id AS text) AS id FROM unnest(CAST(:kinds AS text[])) k (kind)
), {known_owners.sql}
SELECT * FROM known
ORDER BY created_at DESC, kind, id
LIMIT CAST(:limit AS bigint)
