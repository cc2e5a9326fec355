-- The states of these collections, those with the fewest records first.
SELECT name, state, records FROM own_collections
WHERE name = ANY (CAST(:names AS text[]))
ORDER BY records, name
