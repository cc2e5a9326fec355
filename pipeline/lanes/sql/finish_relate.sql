-- Write a batch's changes of the graph, its output and the lane's next stage: one commit, or
-- nothing. `ended_by` of a closed relation is the event that replaced it; without one, the batch's
-- last event, because the model does not say which fact ended it. Storing an existing relation
-- changes nothing. Relations of a fact whose memory a person has deleted are not stored. The
-- memories are locked, so a deletion right after this sees the relations that it must end.
WITH held AS (
    UPDATE lanes SET
        {advance.sql}
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id AS lane_id, project_id, batch_id
), standing AS MATERIALIZED (
    SELECT m.id FROM held JOIN memories m ON m.lane_id = held.lane_id
    WHERE m.id = ANY (CAST(:memory_ids AS uuid[])) AND (m.state = 'ACTIVE' OR EXISTS (
        SELECT FROM memory_history s
        WHERE s.memory_id = m.id AND s.version = m.version
          AND s.event_id = ANY (CAST(:event_ids AS uuid[]))))
    ORDER BY m.id
    FOR SHARE OF m
), placed AS (
    SELECT * FROM jsonb_to_recordset(CAST(:relations AS jsonb)) AS p (
        id uuid, source_id uuid, relation text, destination_id uuid, event_id uuid,
        valid_from timestamptz, memory_id uuid
    )
    WHERE p.memory_id IS NULL OR p.memory_id IN (SELECT id FROM standing)
), node AS (
    INSERT INTO entities (id, project_id, lane_id, name, name_key, kind)
    SELECT n.id, h.project_id, h.lane_id, n.name, n.name_key, n.kind
    FROM held h, jsonb_to_recordset(CAST(:entities AS jsonb)) AS n (
        id uuid, name text, name_key text, kind text
    )
    WHERE n.id IN (SELECT source_id FROM placed UNION SELECT destination_id FROM placed)
    ON CONFLICT DO NOTHING
), closed AS (
    UPDATE relations SET
        valid_to = CAST(:said_at AS timestamptz), expired_at = now(),
        ended_by = coalesce(
            (SELECT p.event_id FROM placed p
              WHERE p.source_id = relations.source_id AND p.relation = relations.relation LIMIT 1),
            CAST(:last_event_id AS uuid))
    FROM held
    WHERE relations.id = ANY (CAST(:ended AS uuid[])) AND relations.lane_id = held.lane_id
      AND relations.expired_at IS NULL
      AND (CAST(:memory_ids AS uuid[]) = '{}' OR EXISTS (SELECT FROM standing))
), edge AS (
    INSERT INTO relations (
        id, project_id, lane_id, source_id, relation, destination_id, event_id, valid_from
    )
    SELECT p.id, h.project_id, h.lane_id, p.source_id, p.relation, p.destination_id, p.event_id,
           p.valid_from
    FROM held h, placed p
    ON CONFLICT DO NOTHING
), {save_output.sql}
SELECT true AS lane, true AS held FROM held
