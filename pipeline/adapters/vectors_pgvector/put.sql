INSERT INTO {table} (id, embedding, payload)
VALUES (:id, CAST(CAST(:embedding AS real[]) AS vector), CAST(:payload AS jsonb))
ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding, payload = excluded.payload
