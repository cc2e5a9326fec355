"""Growth: what a request, a statement and a scope cost as the tables grow."""
