-- Give the scope's events the results of their copies in the shadow: status, batch, costs and
-- receipt lines, which are appended to the existing lines. If an event was copied twice, the last
-- copy counts. A line that the event already has for the same memory is not appended again.
-- Suggestions move over with their lines.
WITH copy AS MATERIALIZED (
    SELECT DISTINCT ON (copy_of) * FROM events
    WHERE project_id = CAST(:shadow_id AS uuid)
    ORDER BY copy_of, seq DESC
), receipt_line AS (
    INSERT INTO receipts (
        event_id, ordinal, outcome, memory_id, text, previous_text, reason, message_ordinal,
        suggestion_id, conflict_id, adopted_at
    )
    SELECT c.copy_of,
           coalesce((SELECT max(ordinal) + 1 FROM receipts k WHERE k.event_id = c.copy_of), 0)
               + row_number() OVER (PARTITION BY c.copy_of ORDER BY c.seq, r.ordinal) - 1,
           r.outcome, r.memory_id, r.text, r.previous_text, r.reason, r.message_ordinal,
           r.suggestion_id, r.conflict_id, now()
    FROM events c JOIN receipts r ON r.event_id = c.id
    WHERE c.project_id = CAST(:shadow_id AS uuid)
      AND NOT EXISTS (
          SELECT FROM receipts k
          WHERE k.event_id = c.copy_of AND k.memory_id = r.memory_id AND k.outcome = r.outcome
            AND k.text IS NOT DISTINCT FROM r.text)
), drawn AS (
    INSERT INTO graph_receipts (
        event_id, ordinal, outcome, relation_id, memory_id, source, relation, destination, reason,
        message_ordinal
    )
    SELECT c.copy_of,
           coalesce((SELECT max(ordinal) + 1 FROM graph_receipts k WHERE k.event_id = c.copy_of), 0)
               + row_number() OVER (PARTITION BY c.copy_of ORDER BY c.seq, r.ordinal) - 1,
           r.outcome, r.relation_id,
           coalesce((SELECT k.ours
                     FROM unnest(CAST(:kept_theirs AS uuid[]), CAST(:kept_ours AS uuid[]))
                         AS k (theirs, ours) WHERE k.theirs = r.memory_id), r.memory_id),
           r.source, r.relation, r.destination, r.reason, r.message_ordinal
    FROM events c JOIN graph_receipts r ON r.event_id = c.id
    WHERE c.project_id = CAST(:shadow_id AS uuid)
), withheld AS (
    UPDATE suggestions SET
        project_id = CAST(:project_id AS uuid), lane_id = CAST(:lane_id AS uuid),
        event_id = c.copy_of
    FROM events c
    WHERE c.project_id = CAST(:shadow_id AS uuid) AND suggestions.event_id = c.id
), paid AS (
    INSERT INTO event_costs AS kept (event_id, calls, prompt_tokens, completion_tokens, cost_nano_usd)
    SELECT c.copy_of, sum(p.calls), sum(p.prompt_tokens), sum(p.completion_tokens),
           sum(p.cost_nano_usd)
    FROM events c JOIN event_costs p ON p.event_id = c.id
    WHERE c.project_id = CAST(:shadow_id AS uuid)
    GROUP BY c.copy_of
    ON CONFLICT (event_id) DO UPDATE SET
        calls = kept.calls + excluded.calls,
        prompt_tokens = kept.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = kept.completion_tokens + excluded.completion_tokens,
        cost_nano_usd = CASE WHEN kept.cost_nano_usd IS NULL THEN excluded.cost_nano_usd
                             ELSE kept.cost_nano_usd + coalesce(excluded.cost_nano_usd, 0) END
)
UPDATE events SET
    status = copy.status, failure_code = copy.failure_code, failure_detail = copy.failure_detail,
    graph_status = copy.graph_status, note = copy.note, batch_id = copy.batch_id
FROM copy
WHERE events.id = copy.copy_of
