"""Search: a query in, ranked memories and turns out."""
