-- BM25 over the texts of `scope` (id, ordinal, terms), which the caller puts in front: how rare a term
-- is and how long a text is are counted there alone, so a tenant's rare word is rare, no matter what others
-- talk about, and the cost grows with that scope alone.
-- A word of a text that holds one of the question's counts in part, and so does one that the
-- question's word holds: the asked "Versicherung" and a text's "Haftpflichtversicherung", either way.
-- `share` is the score as a share of what a text of average length gets that holds each term once;
-- terms that no text holds do not count.
SELECT id, ordinal, share
FROM (
    WITH asked AS (
        SELECT * FROM unnest(CAST(:terms AS text[]), CAST(:inside AS text[])) AS a (term, inside)
    ), size AS (
        SELECT count(*) AS texts, greatest(avg(cardinality(terms)), 1) AS length FROM scope
    ), found AS (
        SELECT s.id, s.ordinal, cardinality(s.terms) AS length, held.term
        FROM scope s, unnest(s.terms) AS held (term)
        WHERE held.term = ANY (CAST(:terms AS text[]))
           OR length(held.term) >= :compound AND held.term LIKE ANY (CAST(:inside AS text[]))
           OR length(held.term) >= :part AND strpos(:compounds, held.term) > 0
    ), word AS (
        SELECT held.term, a.term AS asked,
               CASE WHEN held.term = a.term THEN 1 WHEN held.term LIKE a.inside THEN :held_in
                    ELSE :held_by END AS weight
        FROM (SELECT DISTINCT term FROM found) held
        JOIN asked a
          ON held.term = a.term
          OR length(held.term) >= :compound AND held.term LIKE a.inside
          OR length(held.term) >= :part AND length(a.term) >= :compound
             AND strpos(a.term, held.term) > 0
    ), times AS (
        SELECT f.id, f.ordinal, f.length, w.asked, sum(w.weight) AS times
        FROM found f JOIN word w USING (term)
        GROUP BY f.id, f.ordinal, f.length, w.asked
    ), rarity AS (
        SELECT t.asked, ln(1 + (s.texts - t.holding + 0.5) / (t.holding + 0.5)) AS weight
        FROM (SELECT asked, sum(least(times, 1)) AS holding FROM times GROUP BY asked) t, size s
    )
    SELECT t.id, t.ordinal,
           sum(r.weight * t.times * (:k1 + 1) / (t.times + :k1 * (1 - :b + :b * t.length / s.length)))
               / (SELECT sum(weight) FROM rarity) AS share
    FROM times t JOIN rarity r USING (asked), size s
    GROUP BY t.id, t.ordinal
) AS ranked
ORDER BY share DESC, id, ordinal
LIMIT :limit
