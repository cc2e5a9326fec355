-- Store sampled reads of memories, and keep the newest of each memory. Memories are locked in the
-- order of their ids against a deletion, as in add_accesses.sql; a deleted one is left out.
WITH sampled AS (
    SELECT * FROM unnest(
        CAST(:ids AS uuid[]), CAST(:questions AS text[]), CAST(:places AS int[]),
        CAST(:scores AS double precision[])
    ) AS s (memory_id, question, place, score)
), present AS MATERIALIZED (
    SELECT m.id, m.project_id FROM memories m
    WHERE m.id = ANY (CAST(:ids AS uuid[])) AND m.state = 'ACTIVE'
    ORDER BY m.id
    FOR KEY SHARE
), older AS (
    -- By place (ctid), which no plan can turn into a scan of the table. Reads are never updated, so
    -- a row that was read stays at its place.
    DELETE FROM memory_reads WHERE ctid = ANY (ARRAY(
        SELECT outdated.place
        FROM (SELECT memory_id, count(*) AS reads FROM sampled GROUP BY memory_id) added,
             LATERAL (
                 SELECT r.ctid AS place FROM memory_reads r WHERE r.memory_id = added.memory_id
                 ORDER BY r.id DESC
                 OFFSET greatest(CAST(:most AS int) - added.reads, 0)
             ) outdated
    ))
)
INSERT INTO memory_reads (memory_id, project_id, at, question, place, score)
SELECT p.id, p.project_id, now(), s.question, s.place, s.score
FROM sampled s JOIN present p ON p.id = s.memory_id
