-- Save the answer of an export or a summary, with the lanes of the memories that it was made of: an
-- erasure of one of these lanes withdraws it. If a memory was erased while the model answered,
-- nothing is written and the stage runs again. An id may be that of a memory's past state.
-- Lock order: pipeline/ledger/locks.py.
WITH lane AS MATERIALIZED (
    SELECT id FROM lanes
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    FOR UPDATE
), memory AS (
    SELECT DISTINCT coalesce(p.memory_id, asked.id) AS id
    FROM unnest(CAST(:memory_ids AS uuid[])) AS asked (id)
    LEFT JOIN past_states p ON p.id = asked.id
), source AS MATERIALIZED (
    SELECT m.id, m.lane_id
    FROM lane, memories m
    WHERE m.id IN (SELECT id FROM memory)
    ORDER BY m.id
    FOR KEY SHARE OF m
), advanced AS (
    UPDATE lanes SET
        {next_stage.sql}
    FROM lane
    WHERE lanes.id = lane.id AND (SELECT count(*) FROM source) = (SELECT count(*) FROM memory)
    RETURNING lanes.id AS lane_id, lanes.batch_id
), sources AS (
    INSERT INTO answer_sources (lane_id, batch_id)
    SELECT DISTINCT source.lane_id, advanced.batch_id FROM source, advanced
    ON CONFLICT DO NOTHING
), {save_output.sql}
SELECT true AS lane, EXISTS (SELECT FROM advanced) AS advanced FROM lane
