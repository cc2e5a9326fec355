-- Move entries into the books: the sums stay the same in every snapshot. Runs under an advisory
-- lock: see balance.py.
WITH entry AS (
    DELETE FROM book_entries e
    USING (
        SELECT project_id, id FROM book_entries LIMIT CAST(:limit AS bigint)
    ) share
    WHERE e.project_id = share.project_id AND e.id = share.id
    RETURNING e.project_id, e.kind, e.owner, e.amount, e.since, e.last_at
), folded AS (
    INSERT INTO books (project_id, kind, owner, amount, since, last_at)
    SELECT project_id, kind, owner, sum(amount), min(since), max(last_at) FROM entry
    GROUP BY project_id, kind, owner
    ON CONFLICT (project_id, kind, owner) DO UPDATE SET
        amount = books.amount + excluded.amount, since = least(books.since, excluded.since),
        last_at = greatest(books.last_at, excluded.last_at)
)
SELECT count(*) FROM entry
