-- A separate schema, so that the ledger's migrations never see these tables.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS memlane_vectors;
CREATE TABLE IF NOT EXISTS memlane_vectors.collections (
    name text PRIMARY KEY, dimensions integer NOT NULL, embedder text NOT NULL
)
