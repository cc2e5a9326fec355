-- Entries of these lanes that cover erased and replayed rows: those in the chains, and those in the
-- queue, which have a signature of their own.
SELECT s.lane_id, s.number, s.kind, s.row_id, s.row_no, s.covers, s.digest,
       CAST(NULL AS text) AS key_id, CAST(NULL AS bytea) AS signature
FROM seals s
WHERE s.lane_id = ANY (CAST(:lane_ids AS uuid[])) AND s.kind IN ('erasure', 'replay')
UNION ALL
SELECT q.lane_id, NULL, q.kind, q.row_id, q.row_no, q.covers, NULL, q.key_id, q.signature
FROM seal_queue q
WHERE q.lane_id = ANY (CAST(:lane_ids AS uuid[])) AND q.kind IN ('erasure', 'replay')
