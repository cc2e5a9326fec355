-- BM25 over the texts of `scope` (id, ordinal, terms), a CTE that the caller adds: those texts of a
-- large scope that the lookups of a query have read. The number and the length of all texts, and
-- the number that have each term of the query, are parameters; NULL for a term that is not in the
-- statistics: its texts are counted here. A form is a term of the scope that stands for a term of
-- the query: see pipeline/search/words/large_scopes.py. `share` and `parts` are those of ranking.sql;
-- `words` are positions in the query.
WITH form AS (
    SELECT * FROM unnest(
        CAST(:forms AS text[]), CAST(:asked AS integer[]), CAST(:weights AS float8[])
    ) AS f (term, asked, weight)
), times AS (
    SELECT s.id, s.ordinal, cardinality(s.terms) AS length, f.asked, sum(f.weight) AS times
    FROM scope s, unnest(s.terms) AS stored (term) JOIN form f ON f.term = stored.term
    GROUP BY s.id, s.ordinal, cardinality(s.terms), f.asked
), known AS (
    SELECT ordinality - 1 AS asked, holding
    FROM unnest(CAST(:holding AS float8[])) WITH ORDINALITY AS h (holding, ordinality)
), size AS (
    SELECT CAST(:texts AS float8) AS texts, CAST(:length AS float8) AS length
), rarity AS (
    SELECT k.asked, ln(1 + (s.texts - h.holding + 0.5) / (h.holding + 0.5)) AS weight
    FROM known k CROSS JOIN size s
    LEFT JOIN (
        SELECT asked, sum(least(times, 1)) AS holding FROM times GROUP BY asked
    ) counted USING (asked)
    CROSS JOIN LATERAL (
        SELECT least(coalesce(k.holding, counted.holding), s.texts) AS holding
    ) h
    WHERE h.holding IS NOT NULL
), {best_texts.sql}
