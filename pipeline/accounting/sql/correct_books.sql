-- Add the corrections of wrong counts as entries. The counts and their rows are read in the snapshot
-- of this statement, so changes that commit beside it stay right.
INSERT INTO book_entries (project_id, kind, owner, amount, since, last_at)
SELECT project_id, kind, owner, missing, since, last_at FROM (
{wrong_counts.sql}
) wrong
