-- Counts of the books that differ from their rows, from one snapshot: `missing` is what a count lacks.
-- `plural`: only the numbers of owners, which follow from the counts of the owners; else all others.
-- Counts without rows are left out: searches. Events of incognito sessions, and erased ones that are
-- deleted, are part of others.
WITH line AS (
    SELECT project_id, kind, owner, amount FROM books
    UNION ALL
    SELECT project_id, kind, owner, amount FROM book_entries
), named AS (
    SELECT m.project_id, n.kind, n.owner, m.created_at, m.updated_at
    FROM memories m CROSS JOIN LATERAL (VALUES
        ('user', m.user_id), ('agent', m.agent_id), ('app', m.app_id),
        ('run', CASE WHEN NOT m.temporary THEN m.run_id END)
    ) n (kind, owner)
    WHERE m.state = 'ACTIVE' AND n.owner IS NOT NULL AND NOT CAST(:plural AS boolean)
), row_counts AS (
    SELECT project_id, status AS kind, '' AS owner, count(*) AS amount,
           CAST(NULL AS timestamptz) AS since, CAST(NULL AS timestamptz) AS last_at
    FROM events WHERE NOT CAST(:plural AS boolean) GROUP BY project_id, status
    UNION ALL
    SELECT project_id, event_type, '', count(*), NULL, NULL
    FROM events WHERE NOT CAST(:plural AS boolean) GROUP BY project_id, event_type
    UNION ALL
    SELECT project_id, 'REPLAY', '', sum(replays), NULL, NULL
    FROM events WHERE NOT CAST(:plural AS boolean) GROUP BY project_id
    UNION ALL
    SELECT project_id, 'NUMBER', '', sum(accepted_seq), NULL, NULL
    FROM lanes WHERE NOT CAST(:plural AS boolean) GROUP BY project_id
    UNION ALL
    SELECT project_id, 'MEMORY', '', count(*), NULL, NULL
    FROM memories WHERE state = 'ACTIVE' AND NOT CAST(:plural AS boolean) GROUP BY project_id
    UNION ALL
    SELECT project_id, kind, owner, count(*), min(created_at), max(updated_at)
    FROM named GROUP BY project_id, kind, owner
    UNION ALL
    SELECT project_id, kind || 's', '', count(*), NULL, NULL FROM books
    WHERE owner <> '' AND amount > 0 AND CAST(:plural AS boolean) GROUP BY project_id, kind
    UNION ALL
    -- An event of an incognito session has no row: it is three counts, which go together.
    SELECT project_id, unnest(ARRAY['INCOGNITO', 'SUCCEEDED', 'NUMBER']), '', amount, NULL, NULL
    FROM line WHERE kind = 'INCOGNITO' AND NOT CAST(:plural AS boolean)
    UNION ALL
    -- Erased events whose rows are deleted count as before.
    SELECT project_id, unnest(ARRAY[kind, substr(kind, 6)]), '', amount, NULL, NULL
    FROM line WHERE starts_with(kind, 'GONE ') AND NOT CAST(:plural AS boolean)
), expected AS (
    SELECT project_id, kind, owner, sum(amount) AS amount, min(since) AS since, max(last_at) AS last_at
    FROM row_counts GROUP BY project_id, kind, owner
), recorded AS (
    SELECT project_id, kind, owner, sum(amount) AS amount FROM line
    WHERE kind <> 'SEARCH'
      AND (kind IN ('users', 'agents', 'apps', 'runs')) = CAST(:plural AS boolean)
    GROUP BY project_id, kind, owner
)
SELECT project_id, kind, owner, coalesce(e.amount, 0) - coalesce(r.amount, 0) AS missing,
       e.since, e.last_at
FROM expected e FULL JOIN recorded r USING (project_id, kind, owner)
WHERE coalesce(e.amount, 0) <> coalesce(r.amount, 0)
