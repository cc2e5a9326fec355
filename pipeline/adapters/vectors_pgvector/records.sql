SELECT id, CAST(embedding AS real[]) AS vector, payload FROM {table} WHERE {passes} LIMIT :limit
