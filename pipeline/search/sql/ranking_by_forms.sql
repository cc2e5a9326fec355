-- BM25 over the texts of `scope` (id, ordinal, terms), a CTE that the caller adds: those texts of a
-- large scope that the lookups of a query have read. The number and the length of all texts, and
-- the number that have each term of the query, are parameters; NULL for a term that is not in the
-- statistics: its texts are counted here. A form is a term of the scope that stands for a term of
-- the query: see pipeline/search/words/large_scopes.py. `share` and `parts` are those of ranking.sql; `words` are positions
-- in the query.
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
), rarity AS (
    SELECT k.asked, ln(1 + (CAST(:texts AS float8) - h.holding + 0.5) / (h.holding + 0.5)) AS weight
    FROM known k
    LEFT JOIN (
        SELECT asked, sum(least(times, 1)) AS holding FROM times GROUP BY asked
    ) counted USING (asked)
    CROSS JOIN LATERAL (
        SELECT least(coalesce(k.holding, counted.holding), CAST(:texts AS float8)) AS holding
    ) h
    WHERE h.holding IS NOT NULL
), best AS (
    SELECT t.id, t.ordinal,
           sum(r.weight * t.times * (:k1 + 1)
                   / (t.times + :k1 * (1 - :b + :b * t.length / CAST(:length AS float8))))
               / (SELECT sum(weight) FROM rarity) AS share
    FROM times t JOIN rarity r USING (asked)
    GROUP BY t.id, t.ordinal
    ORDER BY share DESC, id, ordinal
    LIMIT :limit
)
-- As in ranking.sql, the arrays are built of the best texts alone, by a hash join.
SELECT b.id, b.ordinal, b.share,
       array_agg(CAST(b.asked AS text)) AS words,
       array_agg(CAST(r.weight * least(b.times, 1) / (SELECT sum(weight) FROM rarity) AS float8)) AS parts
FROM (
    SELECT best.id, best.ordinal, best.share, t.asked, t.times
    FROM best FULL JOIN times t ON t.id = best.id AND t.ordinal = best.ordinal
    WHERE num_nonnulls(best.id, t.id) = 2
    OFFSET 0
) b JOIN rarity r USING (asked)
GROUP BY b.id, b.ordinal, b.share
ORDER BY b.share DESC, b.id, b.ordinal
