-- Apart from the ledger's tables, so that its migrations never see them.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS memlane_vectors;
CREATE TABLE IF NOT EXISTS memlane_vectors.collections (
    name text PRIMARY KEY, dimensions integer NOT NULL, embedder text NOT NULL
)
