-- The samples of a span in steps: of each step the last numbers, less those of the step before, and
-- the highest ages.
WITH sampled AS (
    SELECT date_bin(CAST(:step AS interval), minute, timestamptz '2020-01-01') AS bin, s.*
    FROM queue_samples s
    WHERE project_id = CAST(:project_id AS uuid)
      AND minute >= now() - CAST(:span AS interval) - CAST(:step AS interval)
), binned AS (
    SELECT bin, max(accepted) AS accepted, max(succeeded) AS succeeded, max(failed) AS failed,
           max(searches) AS searches,
           (array_agg(memories ORDER BY minute DESC))[1] AS memories,
           (array_agg(pending + running ORDER BY minute DESC))[1] AS open,
           max(ready_s) AS ready_s, max(waiting_s) AS waiting_s
    FROM sampled GROUP BY bin
)
SELECT bin AS at,
       greatest(accepted - lag(accepted) OVER w, 0) AS accepted,
       greatest(succeeded - lag(succeeded) OVER w, 0) AS succeeded,
       greatest(failed - lag(failed) OVER w, 0) AS failed,
       greatest(searches - lag(searches) OVER w, 0) AS searches,
       memories, open, ready_s, waiting_s
FROM binned
WINDOW w AS (ORDER BY bin)
ORDER BY bin
