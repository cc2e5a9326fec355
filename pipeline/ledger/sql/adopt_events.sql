-- A scope's events end as their copies in the shadow ended: their status, their batch with what it
-- put out and cost, and their receipts, which go on after what was told before. An event that was
-- copied twice ended as its last copy did.
WITH copy AS MATERIALIZED (
    SELECT DISTINCT ON (copy_of) * FROM events
    WHERE project_id = CAST(:shadow_id AS uuid)
    ORDER BY copy_of, seq DESC
), told AS (
    INSERT INTO receipts (
        event_id, ordinal, outcome, memory_id, text, previous_text, reason, message_ordinal
    )
    SELECT c.copy_of,
           coalesce((SELECT max(ordinal) + 1 FROM receipts k WHERE k.event_id = c.copy_of), 0)
               + row_number() OVER (PARTITION BY c.copy_of ORDER BY c.seq, r.ordinal) - 1,
           r.outcome, r.memory_id, r.text, r.previous_text, r.reason, r.message_ordinal
    FROM events c JOIN receipts r ON r.event_id = c.id
    WHERE c.project_id = CAST(:shadow_id AS uuid)
)
UPDATE events SET
    status = copy.status, failure_code = copy.failure_code, failure_detail = copy.failure_detail,
    graph_status = copy.graph_status, note = copy.note, batch_id = copy.batch_id,
    earlier_tries = copy.earlier_tries
FROM copy
WHERE events.id = copy.copy_of
