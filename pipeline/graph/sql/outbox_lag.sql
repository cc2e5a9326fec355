-- Age of the oldest change that the graph server does not have, in seconds.
SELECT extract(epoch FROM now() - queued_at) AS lag_s FROM graph_outbox ORDER BY id LIMIT 1
