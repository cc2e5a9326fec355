-- For this transaction: go on through the graph until enough of what is met passes the filter, whose
-- values say whether few or many do.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.ef_search', :breadth, true),
       set_config('hnsw.max_scan_tuples', :most, true)
