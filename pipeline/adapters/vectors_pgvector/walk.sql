-- For this transaction: scan the graph until enough records pass the filter, and plan the query for
-- the filter's actual values, because they determine whether few or many records pass.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.ef_search', :breadth, true),
       set_config('hnsw.max_scan_tuples', :most, true)
