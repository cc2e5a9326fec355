-- The texts with the highest shares, from `times`, `rarity` and `size`.
best AS (
    SELECT t.id, t.ordinal,
           sum(r.weight * t.times * (:k1 + 1) / (t.times + :k1 * (1 - :b + :b * t.length / s.length)))
               / (SELECT sum(weight) FROM rarity) AS share
    FROM times t JOIN rarity r USING (asked), size s
    GROUP BY t.id, t.ordinal
    ORDER BY share DESC, id, ordinal
    LIMIT :limit
)
-- The arrays are built of the best texts alone: the planner expects 8 kB of each array of a group,
-- so with those of all texts the groups would go to a file. A full join is a hash join: the planner
-- expects a few rows of an inner one, and compares each row with each other one.
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
