-- Store the number of vectors of each erasure, unless it is known: a repeated pass finds fewer.
-- Lock order: by event.
WITH given AS (
    SELECT event_id, vectors
    FROM unnest(CAST(:event_ids AS uuid[]), CAST(:numbers AS bigint[])) AS pair (event_id, vectors)
), locked AS MATERIALIZED (
    SELECT e.event_id FROM erasures e
    WHERE e.event_id = ANY (CAST(:event_ids AS uuid[])) AND NOT e.counts ? 'vectors'
    ORDER BY e.event_id
    FOR UPDATE
)
UPDATE erasures e SET counts = e.counts || jsonb_build_object('vectors', given.vectors)
FROM locked JOIN given USING (event_id)
WHERE e.event_id = locked.event_id
