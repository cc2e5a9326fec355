-- Signs need a 16th of the memory of half precision: a page of the graph holds 20 vectors, not 2.
CREATE INDEX IF NOT EXISTS {index}_signs ON {table} USING hnsw (signs bit_hamming_ops)
