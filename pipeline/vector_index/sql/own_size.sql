-- The smallest number of memories that one of these ids has, from the books.
SELECT min(coalesce(b.amount, 0)) AS amount
FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) AS pin (kind, id)
LEFT JOIN LATERAL (
    SELECT amount FROM books
    WHERE project_id = CAST(:project_id AS uuid) AND kind = pin.kind AND owner = pin.id
) b ON true
