"""Compare the books with the rows that they count, without the product's own code."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

# One row for each wrong count: `counted` from the rows, `kept` in the books.
DRIFT = """
WITH line AS (
    SELECT project_id, kind, owner, amount FROM books
    UNION ALL SELECT project_id, kind, owner, amount FROM book_entries
), counted_rows AS (
    SELECT project_id, status AS kind, '' AS owner, count(*) AS amount
    FROM events GROUP BY project_id, status
    UNION ALL
    SELECT project_id, event_type, '', count(*) FROM events GROUP BY project_id, event_type
    UNION ALL
    SELECT project_id, 'REPLAY', '', sum(replays) FROM events GROUP BY project_id
    UNION ALL
    SELECT project_id, 'NUMBER', '', sum(accepted_seq) FROM lanes GROUP BY project_id
    UNION ALL
    SELECT project_id, 'MEMORY', '', count(*) FROM memories WHERE state = 'ACTIVE'
    GROUP BY project_id
    UNION ALL
    SELECT project_id, named.kind, owner, count(*) FROM memories CROSS JOIN LATERAL (
        VALUES ('user', user_id), ('agent', agent_id), ('app', app_id),
               ('run', CASE WHEN NOT temporary THEN run_id END)
    ) named (kind, owner)
    WHERE state = 'ACTIVE' AND owner IS NOT NULL GROUP BY project_id, named.kind, owner
    UNION ALL
    SELECT project_id, kind || 's', '', count(*) FROM books WHERE owner <> '' AND amount > 0
    GROUP BY project_id, kind
    UNION ALL
    -- An incognito event has no row: it is three counts, which go together.
    SELECT project_id, unnest(ARRAY['INCOGNITO', 'SUCCEEDED', 'NUMBER']), '', amount
    FROM line WHERE kind = 'INCOGNITO'
    UNION ALL
    SELECT project_id, unnest(ARRAY[kind, substr(kind, 6)]), '', amount
    FROM line WHERE starts_with(kind, 'GONE ')
), counted AS (
    SELECT project_id, kind, owner, sum(amount) AS amount FROM counted_rows
    GROUP BY project_id, kind, owner
), kept AS (
    SELECT project_id, kind, owner, sum(amount) AS amount FROM line
    WHERE kind <> 'SEARCH' GROUP BY project_id, kind, owner
)
SELECT kind, owner, counted.amount AS counted, kept.amount AS kept
FROM counted FULL JOIN kept USING (project_id, kind, owner)
WHERE coalesce(counted.amount, 0) <> coalesce(kept.amount, 0)
"""


async def drift(engine: AsyncEngine) -> list[tuple[Any, ...]]:
    """Wrong counts of the books; empty if the books are exact."""
    async with engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(DRIFT))]
