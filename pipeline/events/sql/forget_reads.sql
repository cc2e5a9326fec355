-- Delete sampled reads of memories after their retention time.
WITH old AS MATERIALIZED (
    SELECT memory_id, id FROM memory_reads
    WHERE at < now() - CAST(:age AS interval)
    ORDER BY at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM memory_reads USING old
WHERE memory_reads.memory_id = old.memory_id AND memory_reads.id = old.id
