-- The metadata of these owners that are described. A look-up for each, by the primary key.
SELECT described.kind, described.id, o.metadata
FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) described (kind, id), LATERAL (
    SELECT metadata FROM owners
    WHERE project_id = CAST(:project_id AS uuid) AND kind = described.kind AND id = described.id
    LIMIT 1
) o
