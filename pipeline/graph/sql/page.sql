-- A page of the relations of scopes, newest first, with the number of all.
SELECT r.id, count(*) OVER () AS count FROM relations r
WHERE r.lane_id = ANY (CAST(:lanes AS uuid[])) AND {at_times.sql}
ORDER BY r.valid_from DESC, r.id
LIMIT CAST(:limit AS integer) OFFSET CAST(:offset AS integer)
