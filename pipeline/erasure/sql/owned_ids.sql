-- The rows of `owned` as arrays, each in a fixed order.
ARRAY(SELECT id FROM mine ORDER BY id) AS lane_ids,
       ARRAY(SELECT id FROM other ORDER BY id) AS others,
       ARRAY(SELECT key FROM key ORDER BY key) AS keys,
       ARRAY(SELECT project_id FROM named ORDER BY project_id, name) AS projects,
       ARRAY(SELECT name FROM named ORDER BY project_id, name) AS names,
       ARRAY(SELECT run_id FROM run ORDER BY run_id) AS run_ids,
       ARRAY(SELECT id FROM memory ORDER BY id) AS memory_ids
