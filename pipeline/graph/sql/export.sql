-- A page of all entities and relations of scopes, entities first, oldest first, with the number of
-- all; also entities that are merged, and relations that have ended. `as_of`: those that were stored
-- at that time; what ended or was merged later is shown as it was then.
WITH rows AS (
    SELECT 0 AS place, e.created_at, e.id, jsonb_build_object(
        'kind', 'entity', 'id', e.id, 'name', e.name, 'type', e.kind, 'qualifier', e.qualifier,
        'mentions', e.mentions, 'created_at', e.created_at,
        'merged_into', merged.merged_into, 'merge_reason', merged.merge_reason,
        'merged_at', merged.merged_at) AS row
    FROM entities e LEFT JOIN LATERAL (
        SELECT known.* FROM ({known_merge.sql}) known
        WHERE CAST(:as_of AS timestamptz) IS NULL OR known.merged_at <= CAST(:as_of AS timestamptz)
    ) merged ON true
    WHERE e.lane_id = ANY (CAST(:lanes AS uuid[]))
      AND e.created_at <= coalesce(CAST(:as_of AS timestamptz), now())
    UNION ALL
    SELECT 1, r.created_at, r.id, jsonb_build_object(
        'kind', 'relation', 'id', r.id, 'source_id', r.source_id, 'relationship', r.relation,
        'target_id', r.destination_id, 'valid_from', r.valid_from,
        'valid_to', ended.valid_to, 'created_at', r.created_at, 'expired_at', ended.expired_at,
        'memory_id', r.memory_id, 'event_id', r.event_id,
        'ended_by', ended.ended_by)
    FROM relations r LEFT JOIN LATERAL (
        SELECT known.* FROM ({known_end.sql}) known
        WHERE CAST(:as_of AS timestamptz) IS NULL OR known.expired_at <= CAST(:as_of AS timestamptz)
    ) ended ON true
    WHERE r.lane_id = ANY (CAST(:lanes AS uuid[]))
      AND r.created_at <= coalesce(CAST(:as_of AS timestamptz), now())
)
SELECT row, count(*) OVER () AS count FROM rows ORDER BY place, created_at, id
LIMIT CAST(:limit AS integer) OFFSET CAST(:offset AS integer)
