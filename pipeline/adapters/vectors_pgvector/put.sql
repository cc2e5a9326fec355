INSERT INTO {table} (id, embedding, signs, payload)
VALUES (:id, CAST(CAST(:embedding AS real[]) AS vector), :signs, CAST(:payload AS jsonb))
ON CONFLICT (id) DO UPDATE SET
    embedding = excluded.embedding, signs = excluded.signs, payload = excluded.payload
