-- Entries of the books that are not yet folded, by owner: at most a few seconds' worth.
entry AS MATERIALIZED (
    SELECT kind, owner AS id, sum(amount) AS amount, min(since) AS since, max(last_at) AS last_at
    FROM book_entries
    WHERE project_id = CAST(:project_id AS uuid) AND kind = ANY (CAST(:kinds AS text[]))
      AND owner <> ''
    GROUP BY kind, owner
)
