-- Record that the index has these versions, if it is the live one. If a row's version or lane
-- changed since it was read, or if it is unknown what the index has of it (version 0), mark the row
-- stale, even if its newest state is already written: this write may have been later (a worker
-- frozen in between). A mark is a new negative number, so a write that was read before it
-- (`recorded`) records nothing: which of the two was later is unknown. Returns the ids erased since
-- then: the index must delete them.
WITH done AS (
    SELECT * FROM unnest(
        CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:recorded AS integer[]),
        CAST(:lane_ids AS uuid[])
    ) AS done (id, version, recorded, lane_id)
), locked AS MATERIALIZED (
    SELECT id FROM {table} WHERE id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
), updated AS (
    UPDATE {table} SET projected_version = CASE
        WHEN {table}.version = done.version AND {table}.lane_id = done.lane_id
         AND {table}.projected_version IN (done.recorded, done.version) THEN done.version
        ELSE least({table}.projected_version, 0) - 1 END
    FROM locked JOIN done USING (id)
    WHERE {table}.id = locked.id
      AND NOT EXISTS (SELECT FROM vector_indexes i WHERE i.state = 'LIVE' AND i.name <> :index)
)
SELECT id FROM done WHERE NOT EXISTS (SELECT FROM {table} WHERE {table}.id = done.id)
