-- Those of these rows that are no longer in the index at this version: changed, moved, stale or
-- erased since they were read.
SELECT done.id
FROM unnest(CAST(:ids AS uuid[]), CAST(:versions AS integer[]), CAST(:lane_ids AS uuid[]))
    AS done (id, version, lane_id)
LEFT JOIN {table} ON {table}.id = done.id
WHERE ({table}.version, {table}.lane_id, {table}.projected_version)
    IS DISTINCT FROM (done.version, done.lane_id, done.version)
