-- Relations of the project that these memories state.
SELECT r.id FROM relations r
WHERE r.memory_id = ANY (CAST(:memory_ids AS uuid[]))
  AND r.project_id = CAST(:project_id AS uuid) AND {at_times.sql}
ORDER BY r.valid_from DESC, r.id
LIMIT CAST(:most AS integer)
