-- Half precision needs half the memory, and allows 4,000 dimensions instead of 2,000.
CREATE INDEX IF NOT EXISTS {index}_near ON {table}
USING hnsw (CAST(embedding AS halfvec({dimensions})) halfvec_cosine_ops)
