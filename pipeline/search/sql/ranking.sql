-- BM25 over the texts of `scope` (id, ordinal, terms), a CTE that the caller adds. Rarity of terms
-- and length of texts are counted in it alone: a word that is rare for a tenant is rare regardless
-- of other tenants' texts, and the cost grows with this scope alone.
-- A word of a text that contains a word of the query counts in part, and so does a word that the
-- query's word contains: "Versicherung" and "Haftpflichtversicherung", in either direction. `share`
-- is the score divided by that of a text of average length with each term once; terms that no text
-- has do not count. `words`: the terms of the query that the text has, and `parts` the share of each
-- in the rarity of all; together they say what several texts have of the query.
WITH query_term AS (
    SELECT * FROM unnest(CAST(:terms AS text[]), CAST(:inside AS text[])) AS a (term, inside)
), size AS (
    SELECT count(*) AS texts, greatest(avg(cardinality(terms)), 1) AS length FROM scope
), match AS (
    SELECT s.id, s.ordinal, cardinality(s.terms) AS length, stored.term
    FROM scope s, unnest(s.terms) AS stored (term)
    WHERE stored.term = ANY (CAST(:terms AS text[]))
       OR length(stored.term) >= :compound AND stored.term LIKE ANY (CAST(:inside AS text[]))
       OR length(stored.term) >= :part AND strpos(:compounds, stored.term) > 0
), word AS (
    SELECT stored.term, a.term AS asked,
           CASE WHEN stored.term = a.term THEN 1 WHEN stored.term LIKE a.inside THEN :held_in
                ELSE :held_by END AS weight
    FROM (SELECT DISTINCT term FROM match) stored
    JOIN query_term a
      ON stored.term = a.term
      OR length(stored.term) >= :compound AND stored.term LIKE a.inside
      OR length(stored.term) >= :part AND length(a.term) >= :compound
         AND strpos(a.term, stored.term) > 0
), times AS (
    SELECT f.id, f.ordinal, f.length, w.asked, sum(w.weight) AS times
    FROM match f JOIN word w USING (term)
    GROUP BY f.id, f.ordinal, f.length, w.asked
), rarity AS (
    SELECT t.asked, ln(1 + (s.texts - t.holding + 0.5) / (t.holding + 0.5)) AS weight
    FROM (SELECT asked, sum(least(times, 1)) AS holding FROM times GROUP BY asked) t, size s
), {best_texts.sql}
