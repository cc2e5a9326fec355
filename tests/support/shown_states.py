"""Compare the marks of suggestions and conflicts with their memories, without product code."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

# One row for each wrong mark: the table, the id, the mark, and the one that it should have.
WRONG = """
SELECT 'suggestions', s.id, s.outdated::text, (NOT s.outdated)::text FROM suggestions s
WHERE s.state = 'OPEN' AND s.outdated <> (
    EXISTS (
        SELECT FROM jsonb_to_recordset(s.targets) AS t (memory_id uuid, version integer)
        LEFT JOIN memories m ON m.id = t.memory_id AND m.version = t.version
            AND m.state = 'ACTIVE' AND m.project_id = s.project_id
        WHERE m.id IS NULL)
    OR EXISTS (
        SELECT FROM receipts r JOIN memories m ON m.id = r.memory_id
        WHERE r.suggestion_id = s.id AND r.event_id = s.event_id AND m.project_id = s.project_id
          AND m.state = 'RETIRED' AND m.forgotten_at IS NOT NULL)
    OR EXISTS (
        SELECT FROM lanes l
        LEFT JOIN events e ON e.id = s.event_id
        LEFT JOIN curator_runs r ON r.id = s.run_id
        WHERE l.id = s.lane_id AND l.forgotten_seq >= coalesce(e.seq, r.accepted_seq)))
UNION ALL
SELECT 'conflicts', id, marked::text, until::text FROM (
    SELECT c.id, c.open_until AS marked, CASE
        WHEN c.resolved_by IS NOT NULL AND e.undone_at IS NULL THEN NULL
        ELSE (
            SELECT max(least(coalesce(m.expiration_date, 'infinity'),
                             coalesce(o.expiration_date, 'infinity')))
            FROM conflict_members a, conflict_members b, memories m, memories o
            WHERE a.conflict_id = c.id AND b.conflict_id = c.id
              AND b.memory_id = a.against_id AND a.memory_id = b.against_id
              -- Each pair once; a statement does not contradict itself.
              AND a.memory_id < b.memory_id
              AND m.id = a.memory_id AND m.lane_id = a.lane_id AND m.text_hash = a.text_hash
              AND o.id = b.memory_id AND o.lane_id = b.lane_id AND o.text_hash = b.text_hash
              AND m.state = 'ACTIVE' AND o.state = 'ACTIVE')
        END AS until
    FROM conflicts c
    LEFT JOIN events e ON e.id = c.resolved_by AND e.project_id = c.project_id
) known
-- Past days are all the same: it is resolved.
WHERE marked IS DISTINCT FROM until
  AND (coalesce(marked, '-infinity') >= (now() AT TIME ZONE 'UTC')::date
       OR coalesce(until, '-infinity') >= (now() AT TIME ZONE 'UTC')::date)
"""


async def wrong_marks(engine: AsyncEngine) -> list[tuple[Any, ...]]:
    """Marks that differ from what the memories say; empty if all are right."""
    async with engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(WRONG))]
