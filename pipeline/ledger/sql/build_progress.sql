SELECT (SELECT count(*) FROM rebuilt) AS done,
       (SELECT count(*) FROM memories m
        WHERE m.state = 'ACTIVE'
          AND NOT EXISTS (SELECT FROM shadows s WHERE s.id = m.project_id)) AS total
