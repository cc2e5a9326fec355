-- The books of one project, or of all where none is named, in one snapshot. What was accepted is
-- counted where it was numbered, in the lanes, and not among the events it is to be compared with:
-- every accept and every replay took one number.
WITH event AS (
    SELECT count(*) FILTER (WHERE status = 'SUCCEEDED') AS succeeded,
           count(*) FILTER (WHERE status = 'FAILED') AS failed,
           count(*) FILTER (WHERE status = 'CANCELLED') AS cancelled,
           count(*) FILTER (WHERE status = 'PENDING') AS pending,
           count(*) FILTER (WHERE status = 'RUNNING') AS running,
           count(*) FILTER (WHERE event_type = 'ADD') AS adds,
           coalesce(sum(replays), 0) AS replays,
           min(coalesce(replayed_at, created_at))
               FILTER (WHERE status IN ('PENDING', 'RUNNING')) AS oldest
    FROM events
    WHERE CAST(:project_id AS uuid) IS NULL OR project_id = CAST(:project_id AS uuid)
), lane AS (
    SELECT coalesce(sum(accepted_seq), 0) AS numbers FROM lanes
    WHERE CAST(:project_id AS uuid) IS NULL OR project_id = CAST(:project_id AS uuid)
), memory AS (
    SELECT count(*) AS memories FROM memories
    WHERE state = 'ACTIVE'
      AND (CAST(:project_id AS uuid) IS NULL OR project_id = CAST(:project_id AS uuid))
)
SELECT memories, adds, CAST(numbers - replays AS bigint) AS accepted,
       succeeded, failed, cancelled, pending, running,
       CAST(greatest(0, extract(epoch FROM now() - oldest)) AS float8) AS oldest_in_flight_s
FROM event, lane, memory
