-- Entries of replays of these events, with the highest number of replays of each.
SELECT row_id, max(row_no) AS row_no
FROM seals
WHERE row_id = ANY (CAST(:event_ids AS uuid[])) AND kind = 'replay'
  AND lane_id = ANY (CAST(:lane_ids AS uuid[]))
GROUP BY row_id
