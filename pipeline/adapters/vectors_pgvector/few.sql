-- How many records pass, counted no further than it matters.
SELECT count(*) FROM (SELECT FROM {table} WHERE {passes} LIMIT :most) AS passing
