-- Save a stage's output and move the lane to the next stage, in one commit: after a crash the stage
-- is either done or not begun. The lane is queued, or stays with its worker (`keeps`), which runs
-- the next stage, whose first attempt is counted here, or settles the batch.
WITH advanced AS (
    UPDATE lanes SET
        {next_stage.sql}
    WHERE {fence.sql}
      AND batch_id IS NOT DISTINCT FROM CAST(:batch_id AS uuid)
    RETURNING id AS lane_id, batch_id
), {save_output.sql}
SELECT true AS lane, true AS advanced FROM advanced
