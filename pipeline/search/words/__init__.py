"""Search by words: BM25, and the statements that bound it in a large scope."""
