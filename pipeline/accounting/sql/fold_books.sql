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
    SELECT project_id, kind, owner, sum(amount), min(since), max(last_at) FROM entry
    GROUP BY project_id, kind, owner
    ON CONFLICT (project_id, kind, owner) DO UPDATE SET
        amount = books.amount + excluded.amount, since = least(books.since, excluded.since),
        last_at = greatest(books.last_at, excluded.last_at)
)
SELECT count(*) FROM entry
