-- What the current memories of a scope know about these attributes, besides the table of
-- pipeline/text/statements/slots: `several` if one of them says it, else `one`.
SELECT a.attribute, known.cardinality
FROM unnest(CAST(:attributes AS text[])) AS a (attribute)
CROSS JOIN LATERAL (
    SELECT m.cardinality FROM memories m
    WHERE m.lane_id = CAST(:lane_id AS uuid) AND m.attribute = a.attribute
      AND m.cardinality IS NOT NULL AND m.state = 'ACTIVE'
    ORDER BY m.cardinality DESC
    LIMIT 1
) known
