-- Move entries into the books: the sums stay the same in every snapshot. Runs under an advisory
-- lock: see balance.py.
WITH entry AS (
    -- By place (ctid), which no plan can turn into a nested loop of two full scans. Entries are never
    -- updated, so they keep their place.
    DELETE FROM book_entries
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM book_entries LIMIT CAST(:limit AS bigint)))
    RETURNING project_id, kind, owner, amount, since, last_at
), folded AS (
    INSERT INTO books (project_id, kind, owner, amount, since, last_at)
    -- An owner dates from its registration, if that is earlier than its first memory.
    SELECT e.project_id, e.kind, e.owner, e.amount, least(e.since, o.created_at), e.last_at
    FROM (
        SELECT project_id, kind, owner, sum(amount) AS amount, min(since) AS since, max(last_at) AS last_at
        FROM entry GROUP BY project_id, kind, owner
    ) e
    LEFT JOIN owners o ON o.project_id = e.project_id AND o.kind = e.kind AND o.id = e.owner
    ON CONFLICT (project_id, kind, owner) DO UPDATE SET
        amount = books.amount + excluded.amount, since = least(books.since, excluded.since),
        last_at = greatest(books.last_at, excluded.last_at)
)
SELECT count(*) FROM entry
