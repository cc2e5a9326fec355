-- Number of rows of a table, and the sum of 60 bits of each row's digest: equal in any order.
SELECT count(*) AS rows,
       coalesce(sum(CAST(CAST(CAST('x' || left(md5(CAST(t.* AS text)), 15) AS bit(60)) AS bigint)
                         AS numeric)), 0) AS checksum
FROM {table} t
