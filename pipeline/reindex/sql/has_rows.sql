-- Tell if anything has a place in a vector index.
SELECT EXISTS (SELECT FROM memories) OR EXISTS (SELECT FROM turn_vectors)
