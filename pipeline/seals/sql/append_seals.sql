-- Append seals to chains.
INSERT INTO seals (
    project_id, lane_id, number, kind, row_id, row_no, salt, digest, link, covers
)
SELECT CAST(:project_id AS uuid), t.*
FROM unnest(
    CAST(:lane_ids AS uuid[]), CAST(:numbers AS bigint[]), CAST(:kinds AS text[]),
    CAST(:row_ids AS uuid[]), CAST(:row_nos AS integer[]), CAST(:salts AS bytea[]),
    CAST(:digests AS bytea[]), CAST(:links AS bytea[]),
    CAST(:covers AS text[])) AS t
