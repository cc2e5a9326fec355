-- What a batch does to the graph, its output and the lane's next stage: one commit, or nothing.
-- A relation is closed by the event that put another in its place; where none did, by the batch's
-- last one: the model says what ended, not by which fact. Repeating a relation changes nothing.
WITH held AS (
    UPDATE lanes SET
        state = CASE WHEN CAST(:next_stage AS text) IS NULL THEN lanes.state ELSE 'QUEUED' END,
        stage = coalesce(CAST(:next_stage AS text), lanes.stage),
        due_at = now() + CAST(:grace AS interval),
        owner = CASE WHEN CAST(:next_stage AS text) IS NULL THEN lanes.owner END,
        attempts = 0, waits = 0, wait_code = NULL
    WHERE id = CAST(:lane_id AS uuid) AND fence = CAST(:fence AS bigint)
      AND state = 'RUNNING' AND owner = CAST(:owner AS uuid)
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id AS lane_id, project_id, batch_id
), placed AS (
    SELECT * FROM jsonb_to_recordset(CAST(:relations AS jsonb)) AS p (
        id uuid, source_id uuid, relation text, destination_id uuid, event_id uuid,
        valid_from timestamptz
    )
), node AS (
    INSERT INTO entities (id, project_id, lane_id, name, name_key, kind)
    SELECT n.id, h.project_id, h.lane_id, n.name, n.name_key, n.kind
    FROM held h, jsonb_to_recordset(CAST(:entities AS jsonb)) AS n (
        id uuid, name text, name_key text, kind text
    )
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
), edge AS (
    INSERT INTO relations (
        id, project_id, lane_id, source_id, relation, destination_id, event_id, valid_from
    )
    SELECT p.id, h.project_id, h.lane_id, p.source_id, p.relation, p.destination_id, p.event_id,
           p.valid_from
    FROM held h, placed p
    ON CONFLICT DO NOTHING
), run AS (
    INSERT INTO stage_runs (
        batch_id, stage, lane_id, output, model, calls, prompt_tokens, completion_tokens, cost_usd,
        ms
    )
    SELECT batch_id, :stage, lane_id, CAST(:output AS jsonb), :model, :calls, :prompt_tokens,
           :completion_tokens, CAST(:cost_usd AS float8), :ms
    FROM held
)
SELECT true AS lane, true AS held FROM held
