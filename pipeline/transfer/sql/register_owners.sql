-- Register owners with their names and metadata; those that are registered stay as they are.
INSERT INTO owners (project_id, kind, id, name, metadata, created_at, updated_at)
SELECT CAST(:project_id AS uuid), o.kind, o.id, o.name, o.metadata, o.created_at, o.updated_at
FROM jsonb_to_recordset(CAST(:owners AS jsonb)) AS o (
    kind text, id text, name text, metadata jsonb, created_at timestamptz, updated_at timestamptz
)
ON CONFLICT DO NOTHING
RETURNING id
