-- For this transaction: go on through the graph until enough of what is met passes the filter.
SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.ef_search', :breadth, true),
       set_config('hnsw.max_scan_tuples', :most, true)
