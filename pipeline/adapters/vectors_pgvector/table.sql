-- Whether the table of a collection exists, and whether it has signs: those of earlier releases
-- have none.
SELECT to_regclass(:table) IS NOT NULL AS exists,
       EXISTS (
           SELECT FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attname = 'signs'
       ) AS signed
