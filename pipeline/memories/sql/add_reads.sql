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
    DELETE FROM memory_reads r USING (
        SELECT memory_id, id, row_number() OVER (PARTITION BY memory_id ORDER BY id DESC) AS place
        FROM memory_reads WHERE memory_id = ANY (CAST(:ids AS uuid[]))
    ) ranked
    WHERE r.memory_id = ranked.memory_id AND r.id = ranked.id
      AND ranked.place > CAST(:most AS int) - (
          SELECT least(count(*), CAST(:most AS int)) FROM sampled s
          WHERE s.memory_id = ranked.memory_id)
)
INSERT INTO memory_reads (memory_id, project_id, at, question, place, score)
SELECT p.id, p.project_id, now(), s.question, s.place, s.score
FROM sampled s JOIN present p ON p.id = s.memory_id
