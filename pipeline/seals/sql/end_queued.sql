-- Remove rows from the queue; postpone those of lanes that fail verification; move lanes on by what
-- was read of them.
WITH gone AS (
    DELETE FROM seal_queue WHERE id = ANY (CAST(:done AS bigint[]))
), postponed AS (
    UPDATE seal_queue SET due_at = now() + CAST(:pause AS interval)
    WHERE id = ANY (CAST(:refused AS bigint[]))
)
UPDATE seal_queue q SET row_no = t.row_no, row_id = t.row_id
FROM unnest(CAST(:moved AS bigint[]), CAST(:seqs AS bigint[]), CAST(:memory_ids AS uuid[]))
    AS t (id, row_no, row_id)
WHERE q.id = t.id
