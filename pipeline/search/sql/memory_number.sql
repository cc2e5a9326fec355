-- Number of memories of the owner with the fewest, by the books: an estimate of the number of those
-- that have all these ids. NULL if no owner has an entry, as in temporary runs.
SELECT min(b.amount) AS memories
FROM unnest(CAST(:kinds AS text[]), CAST(:owners AS text[])) AS pinned (kind, owner)
JOIN books b ON b.project_id = CAST(:in_project AS uuid) AND b.kind = pinned.kind
    AND b.owner = pinned.owner
