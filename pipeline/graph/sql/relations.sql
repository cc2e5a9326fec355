-- Relations by id, with the names under which their entities are shown. Of a relation that names its
-- source, the entities' own names. `conflict_id`: of a current relation, the open conflict of the
-- memory that states it.
SELECT r.id, r.relation, r.valid_from, r.valid_to, r.created_at, r.expired_at, r.memory_id,
       r.event_id, sr.id AS source_id, dr.id AS destination_id,
       CASE WHEN sr.id = dr.id THEN s.name ELSE sr.name END AS source,
       CASE WHEN sr.id = dr.id THEN d.name ELSE dr.name END AS destination,
       sr.kind AS source_kind, dr.kind AS destination_kind, (
           SELECT {open_conflict.sql} FROM memories
           WHERE memories.id = r.memory_id AND memories.lane_id = r.lane_id
             AND memories.state = 'ACTIVE' AND r.expired_at IS NULL
       ) AS conflict_id, NOT {memory_stands.sql} AS expired
FROM relations r
JOIN entities s ON s.id = r.source_id
JOIN entities d ON d.id = r.destination_id
JOIN entities sr ON sr.id = coalesce(s.root_id, s.id)
JOIN entities dr ON dr.id = coalesce(d.root_id, d.id)
WHERE r.id = ANY (CAST(:ids AS uuid[])) AND r.project_id = CAST(:project_id AS uuid)
