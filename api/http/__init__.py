"""HTTP: the server's limits, middleware, bodies, paging and server-sent events."""
