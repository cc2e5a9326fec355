-- The lookups of a query by words: the keys that the index ix_memories_words has for the terms and
-- owners of each, and the number of rows to read. See the function word_keys.
SELECT k.most, array_agg(
    hashtextextended(k.key, hashtextextended(CAST(CAST(:in_project AS uuid) AS text), 0))
) AS wanted
FROM unnest(CAST(:lookups AS integer[]), CAST(:mosts AS integer[]), CAST(:keys AS text[]))
    AS k (lookup, most, key)
GROUP BY k.lookup, k.most
