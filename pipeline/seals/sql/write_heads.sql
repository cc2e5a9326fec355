-- Write the signed heads of lanes.
INSERT INTO seal_heads (
    project_id, lane_id, number, link, signature, key_id, reopened, sealed_at
)
SELECT CAST(:project_id AS uuid), t.lane_id, t.number, t.link, t.signature, CAST(:key_id AS text),
       false, now()
FROM unnest(CAST(:lane_ids AS uuid[]), CAST(:numbers AS bigint[]), CAST(:links AS bytea[]),
            CAST(:signatures AS bytea[])) AS t (lane_id, number, link, signature)
ON CONFLICT (lane_id) DO UPDATE SET
    number = excluded.number, link = excluded.link, signature = excluded.signature,
    key_id = excluded.key_id, reopened = false, sealed_at = now()
