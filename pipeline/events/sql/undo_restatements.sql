-- Move memories back to the time that they had before an undone event repeated them: a repetition
-- moves `said_at` alone, without a version. It is the last earlier time in the past states of the
-- versions with the memory's present state, or in their history once those are deleted. A memory that
-- another event repeated later keeps its time, and so does one whose version changed since the plan.
WITH restated AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:restated AS jsonb)) AS r (
        id uuid, version integer, versions integer[]
    )
), own AS MATERIALIZED (
    SELECT r.memory_id AS id, m.said_at
    FROM receipts r
    JOIN events e ON e.id = r.event_id
    JOIN messages m ON m.lane_id = e.lane_id AND m.seq = e.seq AND m.ordinal = r.message_ordinal
    WHERE r.event_id = CAST(:event_id AS uuid) AND r.outcome = 'NOOP'
), known AS (
    SELECT r.id, p.said_at, p.replaced_at FROM restated r
    JOIN past_states p ON p.memory_id = r.id AND p.version = ANY (r.versions)
    UNION ALL
    SELECT r.id, coalesce(h.said_at, h.valid_from), '-infinity' FROM restated r
    JOIN memory_history h ON h.memory_id = r.id AND h.version = ANY (r.versions)
), former AS (
    SELECT DISTINCT ON (m.id) m.id, known.said_at
    FROM known JOIN memories m USING (id)
    WHERE known.said_at < m.said_at
      AND NOT EXISTS (SELECT FROM own WHERE own.id = m.id AND own.said_at = known.said_at)
    ORDER BY m.id, known.replaced_at DESC, known.said_at DESC
)
UPDATE memories SET said_at = former.said_at
FROM restated r JOIN former USING (id)
WHERE memories.id = r.id AND memories.version = r.version AND memories.state = 'ACTIVE'
  AND EXISTS (SELECT FROM own WHERE own.id = memories.id AND own.said_at = memories.said_at)
