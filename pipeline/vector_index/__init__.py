"""The vector index: a projection of the ledger, over hash buckets."""
